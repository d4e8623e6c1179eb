"""The built-in engine: layout, text detection and recognition on the processor, by ONNX models.

A page goes through these modules in this order: ``bitmap`` (read), ``orientation`` (upright?),
``layout`` (regions by a model), ``textlayer`` (the page's own words, if they can be trusted) or
``detect`` + ``recognize`` (text lines from pixels), ``blocks`` (lines → paragraphs, headings,
tables, figures), ``order`` (reading order), ``tables``, ``write`` (grounded Markdown).
``reader`` runs them over one page, ``engine`` runs the reader in threads.
"""

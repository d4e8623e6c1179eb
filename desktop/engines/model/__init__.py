"""What every engine that runs DeepSeek-OCR-2 shares: prompts, sampling, page sizes,
what fits, what came, outcomes, variables.

Pure Python with Pillow; runs on 3.9, the oldest Python of the older stack.
"""

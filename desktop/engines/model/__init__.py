"""What every engine that runs DeepSeek-OCR-2 shares: prompts, sampling, page sizes, outcomes.

Pure Python with Pillow; runs on 3.10.
"""

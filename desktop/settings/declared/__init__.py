"""The settings, a module for each subject; :mod:`desktop.settings.catalog` joins them."""

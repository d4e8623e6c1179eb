class _ModelRegistry:
    def __init__(self):
        self.models = {}

    def get_supported_archs(self):
        return self.models.keys()

    def register_model(self, model_arch, model_cls):
        assert model_arch not in self.models
        self.models[model_arch] = model_cls


ModelRegistry = _ModelRegistry()

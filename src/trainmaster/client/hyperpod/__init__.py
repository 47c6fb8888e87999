"""HyperPodPyTorchJob manifests as CreateTrainingJob requests."""

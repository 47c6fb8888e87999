"""The meaning of a CreateTrainingJob request to the queue: its demand, its options and its problems.

Pure functions over JSON values. The service model is checked before (`adapters/sagemaker/request_model.py`); these
functions accept any JSON object nevertheless and raise nothing but `InvalidRequest`.
"""

"""What runs inside a training container: the rendezvous of elastic jobs, and what starts on top of it.

It must stay light: torchrun imports it in every process that imports torch, so neither boto3 nor torch is imported
before somebody uses them. It shares no code with the queue, only the error tree and the JSON in the table.
"""

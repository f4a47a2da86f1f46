"""What is known of the engine before a look. Needs the standard library alone, as `make up` does."""

SERVICE = "vllm"  # what compose.yaml calls it
IMAGE_BYTES = 40_000_000_000  # unpacked, beside what it is unpacked from (guess)
SPARE_BYTES = 5_000_000_000  # of a disk, beside images and weights
LARGE_DEVICE_MIB = 70 * 1024  # from there on it takes 1,024 for max-num-seqs: engine/arg_utils.py

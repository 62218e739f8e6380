"""Random-resized-crop and normalization, by torchvision and by TensorFlow."""

import io

import loader_cases


def pil_transform():
    """torchvision's, on images of PIL: encoded bytes to float32 [3, 224, 224]."""
    from PIL import Image
    from torchvision import transforms
    steps = transforms.Compose([
        transforms.RandomResizedCrop(loader_cases.SIDE),
        transforms.ToTensor(),
        transforms.Normalize(loader_cases.MEAN, loader_cases.STD)])

    def run(value):
        return steps(Image.open(io.BytesIO(value)).convert("RGB")).numpy()
    return run


def tensorflow_transform(value):
    """The same by TensorFlow's operations: only the part that is needed is decoded."""
    import tensorflow as tf
    side = loader_cases.SIDE
    begin, size, _ = tf.image.sample_distorted_bounding_box(
        tf.image.extract_jpeg_shape(value), tf.zeros([1, 0, 4]), aspect_ratio_range=(3 / 4, 4 / 3),
        area_range=(0.08, 1.0), max_attempts=10, use_image_if_no_bounding_boxes=True)
    window = tf.concat([begin[:2], size[:2]], axis=0)
    image = tf.image.decode_and_crop_jpeg(value, window, channels=3)
    image = tf.image.resize(image, [side, side], method="bilinear") / 255
    image = (image - loader_cases.MEAN) / loader_cases.STD
    return tf.transpose(image, [2, 0, 1])

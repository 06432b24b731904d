//! Strided views of tensors.

/// Whether a view is contiguous rows.
pub(super) fn is_contiguous(shape: &[usize], strides: &[usize]) -> bool {
    let mut expected = 1;
    for (size, stride) in shape.iter().zip(strides).rev() {
        if *size != 1 && *stride != expected {
            return false;
        }
        expected *= size;
    }
    true
}

/// Copies a strided view into contiguous rows. The caller has checked that every index is in `data`.
pub(super) fn gather(
    data: &[u8],
    shape: &[usize],
    strides: &[usize],
    offset: usize,
    element: usize,
    bytes: usize,
) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes);
    let mut index = vec![0; shape.len()];
    let mut at = offset;
    while out.len() < bytes {
        out.extend_from_slice(&data[at * element..][..element]);
        for axis in (0..shape.len()).rev() {
            index[axis] += 1;
            at += strides[axis];
            if index[axis] < shape[axis] {
                break;
            }
            at -= strides[axis] * shape[axis];
            index[axis] = 0;
        }
    }
    out
}

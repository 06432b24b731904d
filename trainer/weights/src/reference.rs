//! A name in a pickle. To open the file, Python would import it, and perhaps call it.

/// A class or function that a pickle names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// Its module and name, such as `torch._utils._rebuild_tensor_v2`.
    pub name: String,
    /// Whether it is on the allow-list of [`read`](crate::read).
    pub allowed: bool,
    /// How often Python would call it. Naming it already imports its module.
    pub calls: usize,
    /// The arguments of the first call as Python writes them, shortened; only for names that are not on the
    /// allow-list.
    pub arguments: Option<String>,
}

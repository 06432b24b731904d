//! Addresses without their secrets, for messages, plans and files.

use std::fmt;

use reqwest::Url;

/// An address without user name, password and query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redacted(String);

impl Redacted {
    /// Strips everything that may be secret.
    pub fn new(url: &str) -> Self {
        match Url::parse(url) {
            Ok(mut url) => {
                // Both fail only for addresses that cannot hold credentials at all.
                let _ = url.set_username("");
                let _ = url.set_password(None);
                url.set_query(None);
                url.set_fragment(None);
                Self(url.into())
            }
            Err(_) => Self(url.rsplit('@').next().unwrap_or_default().to_owned()),
        }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Redacted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_stripped() {
        let shown = Redacted::new("https://me:secret@index.example/simple/torch.whl?token=x#sha256=y");
        assert_eq!(shown.as_str(), "https://index.example/simple/torch.whl");
        assert_eq!(Redacted::new("no url me:secret@host/x").as_str(), "host/x");
    }
}

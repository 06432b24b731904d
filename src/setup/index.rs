//! PyTorch's own download site, the last source: a page a variant that names the wheels.

use super::pip::Located;
use super::wheels::Wheel;
use crate::fetch::{Client, FetchError, Progress};

/// The page that lists the wheels of the CPU variant.
const CPU_PAGE: &str = "https://download.pytorch.org/whl/cpu/torch/";

/// No such page is longer; it had 200 kB in 2026.
const LONGEST: u64 = 16 << 20;

/// Looks the wheel up on the page.
pub(super) fn ask_pytorch(
    client: &Client,
    wheel: &Wheel,
    progress: &dyn Progress,
) -> Result<Located, FetchError> {
    let page = client.text(CPU_PAGE, LONGEST, progress)?;
    find(&page, wheel.file)
        .ok_or_else(|| FetchError::Missing { archive: CPU_PAGE.to_owned(), member: wheel.file.to_owned() })
}

fn find(page: &str, file: &str) -> Option<Located> {
    let base = reqwest::Url::parse(CPU_PAGE).ok()?;
    let link = page.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next()).find(|link| {
        let path = link.split('#').next().unwrap_or_default();
        path.rsplit('/').next().is_some_and(|name| name.replace("%2B", "+") == file)
    })?;
    let (link, fragment) = link.split_once('#').unwrap_or((link, ""));
    let sha256 = fragment.strip_prefix("sha256=").map(str::to_lowercase);
    Some(Located { address: base.join(link).ok()?.into(), sha256 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_found_with_its_hash() {
        let page = "<a href=\"/whl/cpu/x-1.whl#sha256=00\">x</a><a href=\"/whl/cpu/torch-2.11.0%2Bcpu-a.whl#sha256=AB\">t</a>";
        let located = find(page, "torch-2.11.0+cpu-a.whl").unwrap();
        assert_eq!(located.address, "https://download.pytorch.org/whl/cpu/torch-2.11.0%2Bcpu-a.whl");
        assert_eq!(located.sha256.as_deref(), Some("ab"));
        assert!(find(page, "torch-2.12.0+cpu-a.whl").is_none());
    }
}

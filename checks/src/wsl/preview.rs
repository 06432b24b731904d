//! Previews of Windows expire: after some months Windows does not accept the signature of their Hyper-V, and no virtual
//! machine starts any more.

/// Builds that were released, among the numbers of previews: Windows 11 21H2 to 25H2, Server 2022 and 23H2.
const RELEASED: [u32; 7] = [20348, 22000, 22621, 22631, 25398, 26100, 26200];
/// Numbers of Insider previews so far. Later ones may be releases that are not known here.
const PREVIEWS: std::ops::Range<u32> = 19500..28000;

/// Whether a build of Windows is an Insider preview.
pub fn is_preview(build: u32) -> bool {
    PREVIEWS.contains(&build) && !RELEASED.contains(&build)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_no_previews() {
        for build in [19041, 19045, 20348, 22000, 22621, 22631, 25398, 26100, 26200, 28000] {
            assert!(!is_preview(build), "{build}");
        }
        for build in [22449, 22579, 23403, 25201, 26257, 26392, 27686] {
            assert!(is_preview(build), "{build}");
        }
    }
}

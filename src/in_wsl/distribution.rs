//! In which distribution a command runs: the one that `--distribution` names, else the one that `yolo setup --wsl`
//! prepared, else WSL's default one. The helpers of Docker and the like are never chosen.

use yolo_checks::wsl::exe_output::{Distribution, is_helper};

use super::error::InWslError;

/// The name of the distribution. `known` are those of this PC; none if Windows does not say.
pub(super) fn choose(
    wanted: Option<&str>,
    prepared: Option<&str>,
    known: &[Distribution],
) -> Result<String, InWslError> {
    let named = |name: &str| known.iter().find(|one| one.name.eq_ignore_ascii_case(name));
    if let Some(name) = wanted {
        if is_helper(name) {
            return Err(InWslError::Helper { name: name.to_owned() });
        }
        return match named(name) {
            Some(found) => usable(found),
            None if known.is_empty() => Ok(name.to_owned()),
            None => Err(InWslError::NoSuchDistribution {
                name: name.to_owned(),
                others: known.iter().filter(|one| one.is_usable()).map(|one| one.name.clone()).collect(),
            }),
        };
    }
    if let Some(name) = prepared {
        match named(name) {
            Some(found) => return usable(found),
            None if known.is_empty() => return Ok(name.to_owned()),
            // It was removed.
            None => {}
        }
    }
    let two = || known.iter().filter(|one| one.is_usable() && one.version == 2);
    if let Some(found) = two().find(|one| one.default).or_else(|| two().next()) {
        return Ok(found.name.clone());
    }
    match known.iter().find(|one| one.is_usable()) {
        Some(old) => usable(old),
        None => Err(InWslError::NoDistribution {
            helpers: known.iter().map(|helper| helper.name.clone()).collect(),
        }),
    }
}

fn usable(found: &Distribution) -> Result<String, InWslError> {
    if found.version == 1 {
        return Err(InWslError::VersionOne { distribution: found.name.clone() });
    }
    Ok(found.name.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(wanted: Option<&str>, prepared: Option<&str>, known: &[(&str, bool, u8)]) -> String {
        let known: Vec<Distribution> = known
            .iter()
            .map(|(name, default, version)| Distribution {
                name: (*name).to_owned(),
                default: *default,
                state: String::new(),
                version: *version,
            })
            .collect();
        choose(wanted, prepared, &known).unwrap_or_else(|error| format!("! {error}"))
    }

    #[test]
    fn the_option_precedes_the_prepared_one_and_that_the_default() {
        let known =
            [("Debian", true, 2), ("Ubuntu", false, 2), ("Old", false, 1), ("docker-desktop", false, 2)];
        assert_eq!(chosen(Some("ubuntu"), Some("Debian"), &known), "Ubuntu");
        assert_eq!(chosen(None, Some("Ubuntu"), &known), "Ubuntu");
        assert_eq!(chosen(None, Some("removed"), &known), "Debian");
        assert_eq!(chosen(None, None, &known), "Debian");
        assert_eq!(
            chosen(Some("Arch"), None, &known),
            "! WSL has no distribution Arch; it has Debian, Ubuntu and Old"
        );
        assert!(chosen(Some("Old"), None, &known).starts_with("! the distribution Old runs under WSL 1"));
    }

    #[test]
    fn helpers_are_never_chosen() {
        let known = [("docker-desktop", true, 2), ("Debian", false, 2)];
        assert!(chosen(Some("Docker-Desktop"), None, &known).contains("belongs to another program"));
        assert_eq!(chosen(None, None, &[("docker-desktop", true, 2), ("Debian", false, 2)]), "Debian");
        let helpers = [("docker-desktop", true, 2), ("docker-desktop-data", false, 2)];
        assert!(chosen(None, None, &helpers).contains("only docker-desktop and docker-desktop-data"));
        assert!(chosen(None, None, &[("docker-desktop", true, 2), ("Old", false, 1)]).contains("WSL 1"));
        assert!(chosen(None, None, &[]).contains("no Linux distribution"));
    }

    #[test]
    fn where_windows_does_not_say_names_are_trusted() {
        assert_eq!(chosen(Some("Ubuntu"), None, &[]), "Ubuntu");
        assert_eq!(chosen(None, Some("Ubuntu"), &[]), "Ubuntu");
    }
}

//! Credentials of a host from the user's `.netrc`, which pip respects too.

use std::path::PathBuf;

use yolo_base::env::{HOME, NETRC};

/// Login and password for `host`, from the file that `NETRC` names or from `~/.netrc`.
pub fn credentials_in_netrc(host: &str) -> Option<(String, String)> {
    let path = match std::env::var_os(NETRC) {
        Some(path) => PathBuf::from(path),
        None => PathBuf::from(std::env::var_os(HOME)?).join(".netrc"),
    };
    find(&std::fs::read_to_string(path).ok()?, host)
}

fn find(text: &str, host: &str) -> Option<(String, String)> {
    let mut words =
        text.lines().filter(|line| !line.trim_start().starts_with('#')).flat_map(str::split_whitespace);
    let (mut ours, mut login, mut password) = (false, None, None);
    while let Some(word) = words.next() {
        match word {
            "machine" | "default" => {
                if ours && password.is_some() {
                    break;
                }
                ours = word == "default" || words.next() == Some(host);
                (login, password) = (None, None);
            }
            "login" => login = words.next(),
            "password" => password = words.next(),
            _ => {}
        }
    }
    if ours { Some((login.unwrap_or("").to_owned(), password?.to_owned())) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_that_is_asked_for_is_found() {
        let text = "# mine\nmachine a.example login u password p\nmachine b.example\n login v\n password q\n";
        assert_eq!(find(text, "b.example"), Some(("v".into(), "q".into())));
        assert_eq!(find(text, "a.example"), Some(("u".into(), "p".into())));
        assert_eq!(find(text, "c.example"), None);
    }

    #[test]
    fn default_serves_every_other_host() {
        let text = "machine a.example login u password p\ndefault login d password e\n";
        assert_eq!(find(text, "z.example"), Some(("d".into(), "e".into())));
    }
}

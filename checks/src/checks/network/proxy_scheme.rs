//! Whether the schemes of the proxies are those of proxies. Desktops and VPN programs write `socks://`, which no program
//! for downloads knows. Nothing but a download fails, so this does not stop a run.

use yolo_base::env::HTTPS_PROXY;

use super::proxy::{PLAIN, Proxy, VARIABLES};
use crate::checks::{Answer, Check};
use crate::facts::Host;
use crate::finding::Finding;
use crate::intent::Intent;
use crate::shell_quote::quote;

pub(super) static CHECK: Check = Check {
    question: "Do programs know the schemes of the proxies?",
    reports: &["network.proxy-unknown"],
    preflight: false,
    run,
};

const KNOWN: [&str; 6] = ["http", "https", "socks4", "socks4a", "socks5", "socks5h"];

/// The scheme, if there is one and it is not a proxy's. Without one, programs take `http`.
fn unknown<'a>(proxy: &Proxy<'a>) -> Option<&'a str> {
    proxy.scheme.filter(|scheme| !KNOWN.iter().any(|known| scheme.eq_ignore_ascii_case(known)))
}

/// The proxy with the scheme that was probably meant. Its password belongs in no output, so the command has a
/// placeholder instead.
fn corrected(scheme: &str, proxy: &Proxy<'_>) -> String {
    let scheme = if scheme.to_ascii_lowercase().starts_with("socks") { "socks5h" } else { "http" };
    let login = if proxy.has_login { "<user>:<password>@" } else { "" };
    format!("{scheme}://{login}{}", proxy.address)
}

fn run(host: &Host, _: &Intent) -> Answer {
    host.env(HTTPS_PROXY)?;
    let values = VARIABLES.into_iter().chain(PLAIN);
    let values = values.filter_map(|name| Some((name, host.env(name).ok().flatten()?)));
    let mut finding: Option<Finding> = None;
    for (name, value) in values {
        let proxy = Proxy::parse(&value);
        let Some(scheme) = unknown(&proxy) else { continue };
        let is = format!("{name} is {scheme}://{}", proxy.address);
        let found = match finding {
            Some(finding) => finding.seen(is),
            None => {
                Finding::new("network.proxy-unknown", format!("{is}, but `{scheme}` is not a proxy scheme"))
            }
        };
        finding = Some(found.command(format!("export {name}={}", quote(&corrected(scheme, &proxy)))));
    }
    Ok(finding.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_schemes_that_are_not_a_proxys_are_unknown() {
        for (value, right) in [
            ("socks://10.0.0.1:1080/", Some("socks5h://10.0.0.1:1080")),
            ("SOCKS://10.0.0.1:1080", Some("socks5h://10.0.0.1:1080")),
            ("socks://me:s@cret@10.0.0.1:1080", Some("socks5h://<user>:<password>@10.0.0.1:1080")),
            ("htpp://proxy.example:3128", Some("http://proxy.example:3128")),
            ("Socks5h://10.0.0.1:1080", None),
            ("proxy.example:3128", None),
            ("", None),
        ] {
            let proxy = Proxy::parse(value);
            let found = unknown(&proxy).map(|scheme| corrected(scheme, &proxy));
            assert_eq!(found.as_deref(), right, "{value}");
        }
    }
}

//! The text of an HTTP error: its causes in one line, without the layers that say nothing and without
//! the address, which may hold credentials.

/// How errors of the client's layers begin if the actual cause is in their source.
const LAYERS: [&str; 10] = [
    "builder error",
    "error sending request",
    "request or response body error",
    "error decoding response body",
    "error reading a body",
    "client error",
    "error trying to connect",
    "dns error",
    "error resolving DNS",
    "tcp connect error",
];

/// The error with its causes in one line, without the address, which may contain credentials.
pub(super) fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut next = Some(error);
    while let Some(error) = next {
        let text = match error.downcast_ref::<reqwest::Error>() {
            Some(error) if error.is_timeout() => "the connection stalled".to_owned(),
            Some(error) => without_address(&error.to_string()),
            None => error.to_string(),
        };
        let text = match text.as_str() {
            "operation timed out" => "the connection stalled".to_owned(),
            "end of file before message length reached" => "the connection was cut".to_owned(),
            _ => text,
        };
        // rustls' prefix for errors without their own text.
        let text = text.strip_prefix("unexpected error: ").map_or(text.clone(), str::to_owned);
        let last = error.source().is_none();
        // The layers in between add nothing.
        let says_nothing = LAYERS.iter().any(|layer| text.starts_with(layer));
        if !text.is_empty() && parts.last() != Some(&text) && (last || !says_nothing) {
            parts.push(text);
        }
        next = error.source();
    }
    parts.join(": ")
}

/// reqwest writes "… for url (https://user:password@host/…)".
fn without_address(text: &str) -> String {
    match text.find(" for url (") {
        Some(at) => text[..at].to_owned(),
        None => text.to_owned(),
    }
}

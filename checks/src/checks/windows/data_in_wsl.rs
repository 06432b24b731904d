//! Whether the data or the working folder lies inside a distribution while the program runs on Windows:
//! Windows then reads each image through WSL's 9P server, which is many times slower than a disk.

use crate::checks::{Answer, Check};
use crate::facts::Host;
use crate::finding::Finding;
use crate::intent::Intent;

/// How Windows names the files of distributions, without the two backslashes at the start.
const SERVERS: [&str; 2] = [r"wsl.localhost\", r"wsl$\"];

pub(super) static CHECK: Check = Check {
    question: "Does Windows read the data through WSL?",
    reports: &["windows.data-in-wsl"],
    preflight: true,
    run,
};

fn run(host: &Host, intent: &Intent) -> Answer {
    if !host.is_windows()? {
        return Ok(Vec::new());
    }
    let working = host.places()?.working;
    let folder = intent.data.clone().into_iter().chain(working).find_map(|path| Some((inside(&path)?, path)));
    let Some(((distribution, inside), path)) = folder else { return Ok(Vec::new()) };
    let title = format!("{path} is inside WSL: Windows reads it through WSL's 9P server, which is slow");
    Ok(vec![
        Finding::new("windows.data-in-wsl", title)
            .remedy(format!("run yolo inside WSL in {distribution}, where this is {inside}"))
            .command(format!("wsl.exe -d {distribution}")),
    ])
}

/// `\\wsl.localhost\Ubuntu\home\mara` is `/home/mara` in Ubuntu.
fn inside(path: &str) -> Option<(String, String)> {
    let rest = path.strip_prefix(r"\\")?;
    let rest = SERVERS.iter().find_map(|server| {
        let start = rest.get(..server.len())?;
        start.eq_ignore_ascii_case(server).then(|| &rest[server.len()..])
    })?;
    let (distribution, inside) = rest.split_once('\\').unwrap_or((rest, ""));
    Some((distribution.to_owned(), format!("/{}", inside.replace('\\', "/"))))
}

#[cfg(test)]
mod tests {
    use super::inside;

    #[test]
    fn both_names_of_the_server_are_known() {
        let ubuntu = |path: &str| Some(("Ubuntu".to_owned(), path.to_owned()));
        assert_eq!(inside(r"\\wsl.localhost\Ubuntu\home\mara"), ubuntu("/home/mara"));
        assert_eq!(inside(r"\\WSL$\Ubuntu\srv"), ubuntu("/srv"));
        assert_eq!(inside(r"\\wsl$\Ubuntu"), ubuntu("/"));
        assert_eq!(inside(r"\\nas\birds"), None);
        assert_eq!(inside(r"C:\birds"), None);
    }
}

//! Whether the data or the working folder lies inside a distribution. A run trains there and reads Linux files, if
//! it runs in that distribution. Other programs of Windows read each image through WSL's 9P server, which is many
//! times slower than a disk.

use crate::checks::{Answer, Check};
use crate::facts::Host;
use crate::finding::Finding;
use crate::intent::Intent;
use crate::shell_quote::quote;

/// How Windows names the files of distributions, without the two backslashes at the start.
const SERVERS: [&str; 2] = [r"wsl.localhost\", r"wsl$\"];

pub(super) static CHECK: Check = Check {
    question: "Is the data inside a distribution of WSL?",
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
    let title = format!(
        "{path} is {inside} of {distribution} in WSL: a run there reads it at full speed, programs of Windows read it \
         slowly, through WSL's 9P server"
    );
    Ok(vec![Finding::new("windows.data-in-wsl", title).remedy(format!(
        "train with `yolo train --distribution {}`, which runs inside WSL in {distribution}",
        quote(&distribution)
    ))])
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

//! Images of Universal Blue (Bazzite, Bluefin, Aurora), which bring the kernel together with NVIDIA's driver: a driver is
//! not installed there, but comes with another image, and what an update broke is repaired by the image before.

use crate::facts::{Family, Host};

/// What the image says about itself.
const INFO: &str = "/usr/share/ublue-os/image-info.json";
/// Goes back to the image before the last update.
pub(crate) const ROLL_BACK: &str = "sudo rpm-ostree rollback";
/// What to do where the module is missing in an image. The image before has one; building the layer again gives a module
/// only if the packages fit by now.
pub(crate) const WITHOUT_MODULE: &str = "the module is built when the image is: go back to the image before the last update, and \
     restart; update again when the packages of the driver and the kernel fit; if no image has the module, build its layer again \
     (`sudo rpm-ostree uninstall akmod-nvidia`, then `sudo rpm-ostree install akmod-nvidia`; one that ends with `Running %post for \
     akmod-nvidia` has changed nothing, and the lines before it say why the module was not built), and restart";
/// Keeps the kernel's own drivers from the card. The initramfs is a part of the image, so that files in /etc do not.
pub(crate) const WITHOUT_NOUVEAU: &str = "sudo rpm-ostree kargs --append=rd.driver.blacklist=nouveau,nova_core --append=modprobe.blacklist=nouveau,nova_core";
/// Enrolls the key that signed the modules of these images.
pub(crate) const ENROLL: &str = "ujust enroll-secure-boot-key";

/// The image of this system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Image {
    /// Such as `bazzite-gnome-nvidia-open`, if it is known.
    name: Option<String>,
    /// Such as `stable`.
    tag: String,
}

/// The commands that give the next image a module that is built anew, after a change of what it is built from. An upgrade
/// without anything new would build nothing.
pub(crate) fn rebuild_module(host: &Host) -> Vec<String> {
    // There the driver is no layer but a part of the image.
    if of(host).is_some() || host.family() != Some(Family::Fedora) {
        return vec![ROLL_BACK.to_owned()];
    }
    ["uninstall", "install"].map(|what| format!("sudo rpm-ostree {what} akmod-nvidia")).to_vec()
}

/// The image that this system was started from, if it is one of Universal Blue.
pub(crate) fn of(host: &Host) -> Option<Image> {
    if host.exists("/run/ostree-booted") == Ok(false) {
        return None;
    }
    let id = host.distribution().ok()?.id;
    if let Ok(Some(text)) = host.text(INFO) {
        let info: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        let word = |key: &str| info.get(key).and_then(serde_json::Value::as_str).map(ToOwned::to_owned);
        let tag = word("image-tag").unwrap_or_else(|| "stable".to_owned());
        return Some(Image { name: word("image-name"), tag });
    }
    let is_known = ["bazzite", "bluefin", "aurora"].contains(&id.as_str());
    is_known.then(|| Image { name: None, tag: "stable".to_owned() })
}

impl Image {
    /// Whether NVIDIA's driver is a part of it; `None` if unknown.
    pub(crate) fn has_driver(&self) -> Option<bool> {
        self.name.as_ref().map(|name| name.contains("nvidia"))
    }

    /// The commands that change to the same image with NVIDIA's driver, for cards since Turing.
    pub(crate) fn commands_with_driver(&self) -> Vec<String> {
        // Bazzite's images for developers have the open module under the short name.
        let with = |name: &String| match name
            .strip_prefix("bazzite-dx")
            .map(|rest| rest.trim_start_matches("-nvidia"))
        {
            Some(rest) => format!("bazzite-dx-nvidia{rest}"),
            None => format!("{}-nvidia-open", name.trim_end_matches("-open").trim_end_matches("-nvidia")),
        };
        self.rebase(self.known().filter(|name| !name.contains("deck")).map(with))
    }

    /// The commands that change to the image with the proprietary module of branch 580.
    pub(crate) fn commands_for_old_cards(&self) -> Vec<String> {
        // Which of those for handhelds (deck) exist is not known.
        let has_variants = |name: &&String| name.starts_with("bazzite") && !name.contains("deck");
        let of_bazzite = self.name.as_ref().filter(has_variants).map(|name| {
            if name.contains("gnome") { "bazzite-gnome-nvidia" } else { "bazzite-nvidia" }.to_owned()
        });
        match of_bazzite.filter(|name| self.name.as_ref() != Some(name)) {
            Some(name) => self.rebase(Some(name)),
            None => vec![ROLL_BACK.to_owned()],
        }
    }

    pub(crate) fn advice_for_old_cards(&self) -> &'static str {
        match self.name.as_deref() {
            Some(name) if name.starts_with("bazzite") && !name.contains("deck") => {
                "change to the image with the proprietary module of branch 580, whose name ends in -nvidia, and restart; those \
                that end in -nvidia-open, and Bazzite DX, have the open module only"
            }
            _ => {
                "go back to the image before the update, and restart; the images with the open module (-nvidia-open) cannot run \
                this card, and only those with the proprietary module of branch 580 can (bazzite-nvidia, and \
                bazzite-gnome-nvidia)"
            }
        }
    }

    /// The name, if it is one whose variants are known.
    fn known(&self) -> Option<&String> {
        const KNOWN: [&str; 3] = ["bazzite", "bluefin", "aurora"];
        self.name.as_ref().filter(|name| KNOWN.iter().any(|known| name.starts_with(known)))
    }

    fn rebase(&self, name: Option<String>) -> Vec<String> {
        let place =
            name.map(|name| format!("ostree-image-signed:docker://ghcr.io/ublue-os/{name}:{}", self.tag));
        let rebase = place.map(|place| format!("sudo rpm-ostree rebase {place}"));
        rebase.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn image(info: &str) -> Option<Image> {
        let files = json!({ "/etc/os-release": "ID=bazzite\nID_LIKE=fedora\n", INFO: info });
        of(&Host::from_value(json!({ "version": 1, "os": "linux", "files": files })).unwrap().0)
    }

    #[test]
    fn each_image_has_one_with_the_driver_and_one_for_old_cards() {
        let commands = |name: &str| {
            let image = image(&json!({ "image-name": name, "image-tag": "stable" }).to_string()).unwrap();
            (image.commands_with_driver().remove(0), image.commands_for_old_cards().remove(0))
        };
        let place = "sudo rpm-ostree rebase ostree-image-signed:docker://ghcr.io/ublue-os";
        let expected =
            |new: &str, old: &str| (format!("{place}/{new}:stable"), format!("{place}/{old}:stable"));
        assert_eq!(commands("bazzite"), expected("bazzite-nvidia-open", "bazzite-nvidia"));
        assert_eq!(commands("bazzite-dx-gnome"), expected("bazzite-dx-nvidia-gnome", "bazzite-gnome-nvidia"));
        assert_eq!(commands("aurora-dx").0, format!("{place}/aurora-dx-nvidia-open:stable"));
        assert_eq!(commands("aurora-dx").1, ROLL_BACK);
    }

    proptest! {
        #[test]
        fn any_information_is_read(info in "(\\{|\\}|\"image-name\"|:|\"bazzite|-nvidia\"|,|\"image-tag\"|null|\\PC){0,20}") {
            let found = image(&info);
            prop_assert!(found.is_some_and(|image| image.commands_for_old_cards().len() == 1));
        }
    }
}

//! Services that rent containers or start them for their users, who cannot choose the options of the container. They are
//! known by the variables that they set.

use crate::facts::host::Host;

/// A service that starts the container of its user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rental {
    /// Pods of Runpod.
    Runpod,
    /// Instances of Vast.ai.
    Vast,
    /// Studios of Lightning AI.
    Lightning,
    /// Notebooks of Paperspace Gradient.
    Paperspace,
    /// Notebooks and jobs of Amazon SageMaker.
    SageMaker,
    /// Jobs of Azure Machine Learning.
    AzureMl,
    /// Jobs of Google's Vertex AI.
    Vertex,
    /// Clusters of Databricks.
    Databricks,
    /// Functions of Modal.
    Modal,
    /// Servers of a JupyterHub.
    JupyterHub,
}

/// The variables that tell services apart.
const VARIABLES: [(&str, Rental); 19] = [
    ("RUNPOD_POD_ID", Rental::Runpod),
    ("VAST_CONTAINERLABEL", Rental::Vast),
    ("VAST_TCP_PORT_22", Rental::Vast),
    ("LIGHTNING_CLOUD_PROJECT_ID", Rental::Lightning),
    ("LIGHTNING_CLOUD_SPACE_ID", Rental::Lightning),
    ("LIGHTNING_CLOUD_APP_ID", Rental::Lightning),
    ("PAPERSPACE_NOTEBOOK_REPO_ID", Rental::Paperspace),
    ("PAPERSPACE_FQDN", Rental::Paperspace),
    ("SAGEMAKER_APP_TYPE", Rental::SageMaker),
    ("SAGEMAKER_INTERNAL_IMAGE_URI", Rental::SageMaker),
    ("SM_CURRENT_HOST", Rental::SageMaker),
    ("SM_TRAINING_ENV", Rental::SageMaker),
    ("AZUREML_RUN_ID", Rental::AzureMl),
    ("AZUREML_ROOT_RUN_ID", Rental::AzureMl),
    ("CLOUD_ML_JOB_ID", Rental::Vertex),
    ("CLOUD_ML_PROJECT_ID", Rental::Vertex),
    ("DATABRICKS_RUNTIME_VERSION", Rental::Databricks),
    ("MODAL_TASK_ID", Rental::Modal),
    ("JUPYTERHUB_USER", Rental::JupyterHub),
];

impl Rental {
    /// Its display name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Runpod => "Runpod",
            Self::Vast => "Vast.ai",
            Self::Lightning => "Lightning AI",
            Self::Paperspace => "Paperspace",
            Self::SageMaker => "SageMaker",
            Self::AzureMl => "Azure Machine Learning",
            Self::Vertex => "Vertex AI",
            Self::Databricks => "Databricks",
            Self::Modal => "Modal",
            Self::JupyterHub => "this JupyterHub",
        }
    }
}

impl Host {
    /// The service that started this container for its user. Outside of containers, a service gives its users a machine.
    pub fn rental(&self) -> Option<Rental> {
        let is_set =
            |name: &str| self.env(name).is_ok_and(|value| value.is_some_and(|value| !value.is_empty()));
        let found = VARIABLES.iter().find(|(name, _)| is_set(name)).map(|(_, rental)| *rental);
        if !self.is_container() || self.job().is_some() {
            return None;
        }
        found.or_else(|| self.rental_of_files())
    }

    /// The service, by its files: a login by SSH lacks the variables with which the container was started.
    fn rental_of_files(&self) -> Option<Rental> {
        let has_file = |path: &str| self.exists(path) == Ok(true);
        let mounts = || self.text("/proc/self/mountinfo").ok().flatten().unwrap_or_default();
        if has_file("/etc/rp_environment") || mounts().contains(".runpod.net") {
            return Some(Rental::Runpod);
        }
        has_file("/root/.vast_containerlabel").then_some(Rental::Vast)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn services_are_known_by_their_variables_in_containers() {
        let rental = |env: Value, mark: Value| {
            let recording =
                json!({ "version": 1, "os": "linux", "env": env, "files": { "/.dockerenv": mark } });
            Host::from_value(recording).unwrap().0.rental()
        };
        let runpod = json!({ "RUNPOD_POD_ID": "abc" });
        assert_eq!(rental(runpod.clone(), json!("")), Some(Rental::Runpod));
        assert_eq!(rental(runpod, Value::Null), None);
        let of_files = |files: Value| {
            Host::from_value(json!({ "version": 1, "os": "linux", "env": {}, "files": files }))
                .unwrap()
                .0
                .rental()
        };
        let mount = "70 60 0:50 / /workspace rw - fuse mfs#us-tx-3.runpod.net:9421 rw\n";
        assert_eq!(
            of_files(json!({ "/.dockerenv": "", "/proc/self/mountinfo": mount })),
            Some(Rental::Runpod)
        );
        assert_eq!(
            of_files(json!({ "/.dockerenv": "", "/root/.vast_containerlabel": "C.7" })),
            Some(Rental::Vast)
        );
        assert_eq!(of_files(json!({ "/.dockerenv": null, "/etc/rp_environment": "" })), None);
        assert_eq!(rental(json!({ "CONTAINER_ID": "7" }), json!("")), None);
        assert_eq!(rental(json!({ "JUPYTERHUB_USER": "mara", "SLURM_JOB_ID": "7" }), json!("")), None);
    }
}

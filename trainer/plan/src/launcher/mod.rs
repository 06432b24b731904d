//! What other launchers tell a rank in environment variables: torchrun, Slurm's `srun`, and Kubernetes'
//! PyTorchJob. [`Layout::read`] is a pure function of the variables; `yolo rank` plans from its result.

mod layout;
mod name;
mod node_list;
mod slurm;
mod torchrun;
mod variables;

use crate::error::PlanError;

pub use layout::Layout;
pub use name::Launcher;
pub use node_list::hosts;

impl Layout {
    /// The layout that a launcher's variables describe, which `variable` looks up. The variables of torchrun
    /// win over those of Slurm, since `srun torchrun …` has both.
    ///
    /// # Errors
    /// When there is no launcher, or a variable is missing, invalid or contradicts another.
    pub fn read(variable: &dyn Fn(&str) -> Option<String>) -> Result<Self, PlanError> {
        let variables = variables::Variables(variable);
        if let Some(layout) = torchrun::read(&variables)? {
            return Ok(layout);
        }
        if let Some(layout) = slurm::read(&variables)? {
            return Ok(layout);
        }
        Err(PlanError::usage(
            "no launcher has started this process: RANK, PET_NODE_RANK and SLURM_PROCID are not set",
        )
        .with_hint(
            "start ranks on this machine with `yolo train --device 0,1`; `yolo rank` is for torchrun \
             --no-python, srun and Kubernetes, which start one process for each rank",
        ))
    }
}

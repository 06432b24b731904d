//! `yolo setup`: shows what will be installed, from where, how large it is and on which disk, installs
//! it, and shows the result. `--list` and `--remove` list and remove what is installed.

use serde::Serialize;
use yolo_base::exit;
use yolo_checks::Intent;
use yolo_checks::wsl::sizing::Training;
use yolo_plan::dataset;

use super::interrupt::Interrupt;
use crate::cli::{SetupArgs, VariantName};
use crate::dirs::YoloDirs;
use crate::error::CommandError;
use crate::machine;
use crate::printer::{Printer, SetupView, WslView, setup_text as show};
use crate::setup::wsl::WslRequest;
use crate::setup::{
    self, Chosen, Context, Disk, InstalledItem, SetupError, SetupPlan, SetupRequest, SetupStep, StepOutcome,
};

/// What `--json` prints.
#[derive(Default, Serialize)]
struct Report {
    steps: Vec<SetupStep>,
    disks: Vec<Disk>,
    /// The result of each step; absent with `--dry-run`.
    #[serde(skip_serializing_if = "Option::is_none")]
    done: Option<Vec<StepOutcome>>,
    /// Why setup failed; absent if it did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// Installs, lists or removes, and returns the exit status.
pub(super) fn setup(
    args: &SetupArgs,
    distribution: Option<&str>,
    offline: bool,
    printer: &Printer,
) -> Result<u8, CommandError> {
    let dirs = YoloDirs::from_env()?;
    if args.wsl {
        return set_up_wsl(args, distribution, &dirs, printer);
    }
    let view = SetupView::new(printer);
    let context = Context::new(&dirs, offline, &view);
    if args.list {
        list(&setup::installed_items(&dirs), args.json, printer);
        return Ok(exit::SUCCESS);
    }
    if !args.remove.is_empty() {
        let removed = setup::remove(&context, &args.remove)?;
        if args.json {
            printer.result(json(&removed));
        } else if removed.is_empty() {
            printer.say("nothing to remove");
        }
        removed.iter().for_each(|gone| printer.say(show::removed(gone)));
        return Ok(exit::SUCCESS);
    }
    let plan_places = machine::plan_places(&dirs)?;
    let choose = || machine::chosen_for_this_machine(&dirs);
    let variant = args.libtorch.map(|name| match name.variant() {
        Some(variant) => Chosen::named(variant),
        None => choose(),
    });
    let request = SetupRequest {
        // Without weights or a data set, setup installs what a run needs.
        programs: variant.is_some() || args.nccl || (args.weights.is_empty() && args.data.is_empty()),
        nccl: args.nccl,
        variant,
        weights: args.weights.clone(),
        data: args.data.clone(),
    };
    let _interrupt = Interrupt::with_message("run the same command again to continue the download", printer);
    let mut report = Report::default();
    let result = install(&request, &context, &plan_places, choose, args, (&view, printer), &mut report);
    view.clear();
    drop(view);
    if args.json {
        report.error = result.as_ref().err().map(ToString::to_string);
        printer.result(json(&report));
    }
    result?;
    Ok(exit::SUCCESS)
}

/// Plans and installs. `report` is filled as far as it gets, also if it fails.
fn install(
    request: &SetupRequest,
    context: &Context<'_>,
    plan_places: &dataset::Places,
    choose: impl FnOnce() -> Chosen,
    args: &SetupArgs,
    (view, printer): (&SetupView<'_>, &Printer),
    report: &mut Report,
) -> Result<(), SetupError> {
    let plan = SetupPlan::make(request, context, plan_places, choose)?;
    report.steps = plan.steps().cloned().collect();
    report.disks = plan.disks()?;
    view.clear();
    if args.dry_run || !plan.is_done() {
        let text = show::plan(&report.steps, &report.disks);
        match (args.dry_run, args.json) {
            (true, true) => {}
            (true, false) => printer.result(text),
            (false, _) => printer.say(text),
        }
    }
    if args.dry_run {
        return Ok(());
    }
    plan.check_room()?;
    plan.run(context, plan_places, report.done.insert(Vec::new()), |step, outcome| {
        view.above(|| printer.say(show::outcome(step, outcome)));
    })
}

/// `--wsl`: sets up WSL from Windows, or adjusts the WSL in which it runs.
fn set_up_wsl(
    args: &SetupArgs,
    distribution: Option<&str>,
    dirs: &YoloDirs,
    printer: &Printer,
) -> Result<u8, CommandError> {
    let intent = Intent {
        nnodes: args.nnodes.and_then(|machines| usize::try_from(machines).ok()),
        ..crate::doctor::intent::of_arguments(&args.train)
    };
    let request = WslRequest {
        distribution: distribution.map(str::to_owned),
        training: Training::of(&intent),
        dry_run: args.dry_run,
    };
    let view = WslView { printer, yes: args.yes, json: args.json };
    setup::wsl::set_up(&request, dirs, &view)?;
    Ok(exit::SUCCESS)
}

fn list(items: &[InstalledItem], as_json: bool, printer: &Printer) {
    if as_json {
        printer.result(json(&items));
    } else if items.is_empty() {
        printer.say("nothing is installed yet; run `yolo setup` to install what training needs");
    } else {
        printer.result(show::installed(items));
    }
}

fn json(value: &impl Serialize) -> String {
    // These types have string keys only, so that this cannot fail.
    serde_json::to_string_pretty(value).unwrap_or_default()
}

impl VariantName {
    fn variant(self) -> Option<setup::Variant> {
        match self {
            Self::Auto => None,
            Self::Cpu => Some(setup::Variant::Cpu),
            Self::Cu126 => Some(setup::Variant::Cu126),
            Self::Cu128 => Some(setup::Variant::Cu128),
            Self::Cu130 => Some(setup::Variant::Cu130),
        }
    }
}

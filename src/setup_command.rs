//! `yolo setup`: says what will be installed, from where, how many bytes and onto which disk, does
//! it, and says what stands. `--list` and `--remove` show and take away what is installed.

use std::process::ExitCode;

use serde::Serialize;
use yolo_checks::Intent;
use yolo_checks::wsl::sizing::Training;
use yolo_plan::dataset;

use crate::cli::{SetupArgs, VariantName};
use crate::dirs::YoloDirs;
use crate::error::CommandError;
use crate::host;
use crate::interrupt::Interrupt;
use crate::printer::{Printer, SetupView, WslView, setup as show};
use crate::setup::wsl::WslRequest;
use crate::setup::{
    self, Chosen, Context, Disk, InstalledItem, SetupError, SetupPlan, SetupRequest, SetupStep, StepOutcome,
};

/// What `--json` prints.
#[derive(Default, Serialize)]
struct Report {
    steps: Vec<SetupStep>,
    disks: Vec<Disk>,
    /// What each step came to; absent after `--dry-run`.
    #[serde(skip_serializing_if = "Option::is_none")]
    done: Option<Vec<StepOutcome>>,
    /// Why it ended early; absent when it did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// Sets up as the words say.
pub(crate) fn setup(args: &SetupArgs, offline: bool, printer: &Printer) -> Result<ExitCode, CommandError> {
    let places = YoloDirs::from_env()?;
    if args.wsl {
        return set_up_wsl(args, &places, printer);
    }
    let view = SetupView::new(printer);
    let context = Context::new(&places, offline, &view);
    if args.list {
        list(&setup::installed_items(&places), args.json, printer);
        return Ok(ExitCode::SUCCESS);
    }
    if !args.remove.is_empty() {
        let removed = setup::remove(&context, &args.remove)?;
        if args.json {
            printer.result(json(&removed));
        } else if removed.is_empty() {
            printer.say("nothing was left to remove");
        }
        removed.iter().for_each(|gone| printer.say(show::removed(gone)));
        return Ok(ExitCode::SUCCESS);
    }
    let plan_places = host::plan_places(&places)?;
    let choose = || host::chosen_for_this_machine(&places);
    let variant = args.libtorch.map(|name| match name.variant() {
        Some(variant) => Chosen::named(variant),
        None => choose(),
    });
    let wish = SetupRequest {
        // Whoever names weights or a data set gets these; whoever names nothing, what a run needs.
        programs: variant.is_some() || (args.weights.is_empty() && args.data.is_empty()),
        variant,
        weights: args.weights.clone(),
        data: args.data.clone(),
    };
    let _interrupt = Interrupt::says("what came is kept: run the same command again to go on", printer);
    let mut report = Report::default();
    let result = carry_out(&wish, &context, &plan_places, choose, args, (&view, printer), &mut report);
    view.clear();
    drop(view);
    if args.json {
        report.error = result.as_ref().err().map(ToString::to_string);
        printer.result(json(&report));
    }
    result?;
    Ok(ExitCode::SUCCESS)
}

/// Plans, and does it; `report` has what was found and done before an error too.
fn carry_out(
    wish: &SetupRequest,
    context: &Context<'_>,
    plan_places: &dataset::Places,
    choose: impl FnOnce() -> Chosen,
    args: &SetupArgs,
    (view, printer): (&SetupView<'_>, &Printer),
    report: &mut Report,
) -> Result<(), SetupError> {
    let plan = SetupPlan::make(wish, context, plan_places, choose)?;
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

/// `--wsl`: the steps of a Windows PC, or of the WSL that this runs in.
fn set_up_wsl(args: &SetupArgs, places: &YoloDirs, printer: &Printer) -> Result<ExitCode, CommandError> {
    let intent = Intent {
        nnodes: args.nnodes.and_then(|machines| usize::try_from(machines).ok()),
        ..crate::doctor::intent::of_words(&args.train)
    };
    let request = WslRequest {
        distribution: args.distribution.clone(),
        training: Training::of(&intent),
        dry_run: args.dry_run,
    };
    let view = WslView { printer, yes: args.yes, json: args.json };
    setup::wsl::set_up(&request, places, &view)?;
    Ok(ExitCode::SUCCESS)
}

fn list(holdings: &[InstalledItem], as_json: bool, printer: &Printer) {
    if as_json {
        printer.result(json(&holdings));
    } else if holdings.is_empty() {
        printer.say("nothing is installed; `yolo setup` installs what a run needs");
    } else {
        printer.result(show::holdings(holdings));
    }
}

fn json(value: &impl Serialize) -> String {
    // These types have text keys only, which JSON can always hold.
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

//! PFSELFTEST

use rand::RngExt;
use rand::rngs::SmallRng;

use crate::args::Args;
use crate::context::Context;
use crate::error::{CommandError, CommandResult};
use crate::hyperloglog::{Form, REGISTERS, Sketch, check_registers};

/// Times that every register is set and read.
const REGISTER_ROUNDS: usize = 1000;

/// Different elements added in the end.
const ELEMENTS: u64 = 10_000_000;

pub(super) fn pfselftest(context: &mut Context<'_>, _: Args<'_>) -> CommandResult {
    test_registers(&mut context.keys.random)?;
    let seed = context.keys.random.random();
    test_estimates(seed, context.keys.settings.hll_sparse_max_bytes)?;
    context.reply.ok();
    Ok(())
}

fn failed(what: &str) -> CommandError {
    CommandError::new(format!("ERR TESTFAILED {what}"))
}

/// Every register gives back what it was set to, whatever its neighbours are set to.
fn test_registers(random: &mut SmallRng) -> CommandResult {
    let mut values = vec![0; REGISTERS];
    for _ in 0..REGISTER_ROUNDS {
        values.iter_mut().for_each(|value| *value = random.random_range(0..64));
        if let Err((index, found)) = check_registers(&values) {
            return Err(failed(&format!("Register {index} should be {} but is {found}", values[index])));
        }
    }
    Ok(())
}

/// Both forms give the same estimates, which are as far off at the most as the theory has it.
fn test_estimates(seed: u64, longest_sparse: usize) -> CommandResult {
    // Six times the standard error leaves next to no room for bad luck.
    let relative_error = 6.0 * 1.04 / (REGISTERS as f64).sqrt();
    let mut sparse = Sketch::default();
    let mut dense = Sketch::default().into_dense()?;
    let mut checkpoint = 1;
    for number in 1..=ELEMENTS {
        let element = (number ^ seed).to_ne_bytes();
        dense.add(&element, longest_sparse)?;
        sparse.add(&element, longest_sparse)?;
        if number < checkpoint {
            continue;
        }
        checkpoint *= 10;
        if number < longest_sparse as u64 / 2 && sparse.form() != Some(Form::Sparse) {
            return Err(failed("sparse encoding not used"));
        }
        let estimate = dense.estimate()?;
        if sparse.estimate()? != estimate {
            return Err(failed("dense/sparse disagree"));
        }
        let error = estimate.abs_diff(number);
        // Among ten elements a collision is a tenth, and not that unlikely.
        let tolerated = if number == 10 { 1 } else { (relative_error * number as f64).ceil() as u64 };
        if error > tolerated {
            return Err(failed(&format!("Too big error. card:{number} abserr:{error}")));
        }
    }
    Ok(())
}

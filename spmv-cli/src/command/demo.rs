//! stub
use crate::failure::Failure;
use crate::report::OutputArgs;
/// stub
#[derive(Debug, clap::Args)]
pub struct Demo {
    #[command(flatten)]
    pub output: OutputArgs,
}
impl Demo {
    pub fn run(self) -> Result<(), Failure> {
        Ok(())
    }
}

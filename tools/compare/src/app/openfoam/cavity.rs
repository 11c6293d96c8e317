// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The lid-driven cavity, laminar: the smallest case. It needs only the solver.
//!
//! Called through program. Source: the OpenFOAM user guide, "Lid-driven cavity flow".

use super::super::program::{Outcome, Program, Size};
use super::{dictionary, solve, tool};
use crate::error::Error;
use std::path::Path;

/// The lid-driven cavity.
pub struct Cavity;

/// Cells along an edge, and time steps (chosen: seconds, and some ten seconds, on two cores).
fn extent(size: Size) -> (usize, usize) {
    match size {
        Size::Quick => (60, 40),
        Size::Usual => (200, 60),
    }
}

impl Program for Cavity {
    fn name(&self) -> &'static str {
        "openfoam"
    }

    fn case(&self) -> &'static str {
        "cavity"
    }

    fn title(&self) -> &'static str {
        "OpenFOAM"
    }

    fn files(&self) -> &'static [(&'static str, &'static str)] {
        &[
            ("blockMesh", "openfoam"),
            ("decomposePar", "openfoam"),
            ("icoFoam", "openfoam"),
        ]
    }

    fn input(&self, size: Size) -> String {
        let (cells, steps) = extent(size);
        format!("lid-driven cavity of {cells} x {cells} cells, {steps} time steps")
    }

    fn prepare(&self, folder: &Path, size: Size) -> Result<(), Error> {
        let (cells, steps) = extent(size);
        // The Courant number stays at 0.5 whatever the cells.
        let step_seconds = 0.05 / cells as f64;
        for (place, class, body) in [
            ("0/U", "volVectorField", include_str!("../input/cavity/U")),
            ("0/p", "volScalarField", include_str!("../input/cavity/p")),
            (
                "constant/transportProperties",
                "dictionary",
                include_str!("../input/cavity/transportProperties"),
            ),
            (
                "system/blockMeshDict",
                "dictionary",
                include_str!("../input/cavity/blockMeshDict"),
            ),
            (
                "system/controlDict",
                "dictionary",
                include_str!("../input/cavity/controlDict"),
            ),
            (
                "system/fvSchemes",
                "dictionary",
                include_str!("../input/cavity/fvSchemes"),
            ),
            (
                "system/fvSolution",
                "dictionary",
                include_str!("../input/cavity/fvSolution"),
            ),
        ] {
            let text = body
                .replace("@CELLS@", &cells.to_string())
                .replace("@END@", &format!("{:.9}", step_seconds * steps as f64))
                .replace("@STEP@", &format!("{step_seconds:.9}"));
            dictionary(folder, place, class, &text)?;
        }
        tool(folder, "blockMesh")
    }

    fn command(&self, folder: &Path, ranks: u16, _: Size) -> Result<Vec<String>, Error> {
        solve(folder, ranks, "icoFoam")
    }

    fn read(&self, folder: &Path) -> Result<Outcome, Error> {
        super::read(folder)
    }

    fn result_name(&self) -> &'static str {
        "residuals"
    }
}

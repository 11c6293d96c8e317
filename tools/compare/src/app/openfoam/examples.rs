// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Cases that come with OpenFOAM, both turbulent and steady: pitzDaily, a backward-facing step, and
//! motorBike, a motorcycle in the wind.
//!
//! Called through program. The files are copied from Debian's package openfoam-examples on this
//! machine. Changed are only the size of the mesh, the number of iterations and which results are
//! written. The motorBike example does not contain the motorcycle's surface; it is taken from the
//! example on finding leaks. Source: the OpenFOAM user guide, "snappyHexMesh", "foamDictionary",
//! "Numerical schemes".

use super::super::folder::{copy, helper};
use super::super::program::{Outcome, Program, Size};
use super::{dictionary, solve, tool};
use crate::error::Error;
use std::path::{Path, PathBuf};

/// Where Debian puts them.
const PLACE: &str = "/usr/share/doc/openfoam-examples/examples";
/// The surface of the motorcycle, within them.
const SURFACE: &str =
    "mesh/snappyHexMesh/motorBike_leakDetection/constant/triSurface/motorBike-wo-visor.obj.gz";

/// A backward-facing step.
pub struct PitzDaily;
/// A motorcycle in the wind.
pub struct MotorBike;

/// Iterations (chosen as the other programs' extents).
fn step_iterations(size: Size) -> usize {
    match size {
        Size::Quick => 20,
        Size::Usual => 120,
    }
}

/// Refinements at the surface and in the box around it, and iterations (chosen: meshing takes some
/// seconds, and some ten; the published runs of this case have 4 million cells, the example as it
/// stands some 350 000).
fn bike_extent(size: Size) -> (usize, usize) {
    match size {
        Size::Quick => (2, 10),
        Size::Usual => (3, 40),
    }
}

impl Program for PitzDaily {
    fn name(&self) -> &'static str {
        "openfoam"
    }

    fn case(&self) -> &'static str {
        "pitzdaily"
    }

    fn title(&self) -> &'static str {
        "OpenFOAM"
    }

    fn files(&self) -> &'static [(&'static str, &'static str)] {
        &[
            ("blockMesh", "openfoam"),
            ("decomposePar", "openfoam"),
            ("simpleFoam", "openfoam"),
        ]
    }

    fn input(&self, size: Size) -> String {
        format!("pitzDaily, {} iterations", step_iterations(size))
    }

    fn prepare(&self, folder: &Path, size: Size) -> Result<(), Error> {
        copied("incompressible/simpleFoam/pitzDaily", folder)?;
        control(folder, step_iterations(size))?;
        tool(folder, "blockMesh")
    }

    fn command(&self, folder: &Path, ranks: u16, _: Size) -> Result<Vec<String>, Error> {
        solve(folder, ranks, "simpleFoam")
    }

    fn read(&self, folder: &Path) -> Result<Outcome, Error> {
        super::read(folder)
    }

    fn result_name(&self) -> &'static str {
        "residuals"
    }
}

impl Program for MotorBike {
    fn name(&self) -> &'static str {
        "openfoam"
    }

    fn case(&self) -> &'static str {
        "motorbike"
    }

    fn title(&self) -> &'static str {
        "OpenFOAM"
    }

    fn files(&self) -> &'static [(&'static str, &'static str)] {
        &[
            ("blockMesh", "openfoam"),
            ("decomposePar", "openfoam"),
            ("simpleFoam", "openfoam"),
            ("snappyHexMesh", "openfoam"),
        ]
    }

    fn input(&self, size: Size) -> String {
        let (level, iterations) = bike_extent(size);
        format!(
            "motorBike, refined {level} to {} times, {iterations} iterations",
            level + 1
        )
    }

    fn prepare(&self, folder: &Path, size: Size) -> Result<(), Error> {
        let (level, iterations) = bike_extent(size);
        copied("incompressible/simpleFoam/motorBike", folder)?;
        copy(&folder.join("0.orig"), &folder.join("0"))?;
        let surface = folder.join("constant/triSurface/motorBike.obj.gz");
        std::fs::copy(examples()?.join(SURFACE), &surface)
            .map_err(Error::file("copy", Path::new(SURFACE)))?;
        control(folder, iterations)?;
        for (entry, value) in [
            ("addLayers", "false".to_owned()),
            (
                "castellatedMeshControls/refinementSurfaces/motorBike/level",
                format!("({level} {})", level + 1),
            ),
            (
                "castellatedMeshControls/refinementRegions/refinementBox/levels",
                format!("((1E15 {}))", level.saturating_sub(1)),
            ),
            (
                "castellatedMeshControls/features",
                format!("({{ file \"motorBike.eMesh\"; level {level}; }})"),
            ),
        ] {
            set(folder, "system/snappyHexMeshDict", entry, &value)?;
        }
        for line in [
            "surfaceFeatureExtract",
            "blockMesh",
            "snappyHexMesh -overwrite",
        ] {
            tool(folder, line)?;
        }
        // Every run copies this folder; nobody reads the surface again.
        let _ = std::fs::remove_dir_all(folder.join("constant/triSurface"));
        let _ = std::fs::remove_dir_all(folder.join("constant/extendedFeatureEdgeMesh"));
        Ok(())
    }

    fn command(&self, folder: &Path, ranks: u16, _: Size) -> Result<Vec<String>, Error> {
        solve(folder, ranks, "simpleFoam")
    }

    fn read(&self, folder: &Path) -> Result<Outcome, Error> {
        super::read(folder)
    }

    fn result_name(&self) -> &'static str {
        "residuals"
    }
}

/// Where the examples are.
fn examples() -> Result<PathBuf, Error> {
    let place = PathBuf::from(PLACE);
    if place.is_dir() {
        return Ok(place);
    }
    Err(Error::Missing(format!(
        "{PLACE} is not there. On Debian and Ubuntu: apt install openfoam-examples; --case cavity \
         does without"
    )))
}

/// A case's own copy, with what Debian's packages compress unpacked.
fn copied(case: &str, folder: &Path) -> Result<(), Error> {
    copy(&examples()?.join(case), folder)?;
    let system = folder.join("system");
    let listing = std::fs::read_dir(&system).map_err(Error::file("read", &system))?;
    for entry in listing.flatten() {
        let path = entry.path();
        if path.extension().is_some_and(|end| end == "gz") {
            helper(folder, &["gzip", "-d", &path.to_string_lossy()], None)?;
        }
    }
    Ok(())
}

/// Iterations, and nothing written on the way: what a run writes would be timed, and is not the
/// solver's.
fn control(folder: &Path, iterations: usize) -> Result<(), Error> {
    let body = format!(
        "application simpleFoam;\nstartFrom startTime;\nstartTime 0;\nstopAt endTime;\nendTime \
        {iterations};\ndeltaT 1;\n\
         writeControl timeStep;\nwriteInterval 1000000;\nrunTimeModifiable false;\n"
    );
    dictionary(folder, "system/controlDict", "dictionary", &body)
}

/// Changes an entry of a dictionary.
fn set(folder: &Path, file: &str, entry: &str, value: &str) -> Result<(), Error> {
    super::takes(folder)?;
    let mut words = super::words("foamDictionary");
    words.extend([file, "-entry", entry, "-set", value].map(str::to_owned));
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    helper(folder, &words, None)
}

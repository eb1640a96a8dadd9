//! What the real server said, a file a family and a line a case, so that a change of its mind is seen in a diff.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::Value;

use super::ask::Outcomes;

/// Writes the outcomes of each family into `directory`; families that were not asked stay as they are.
pub fn write(directory: &Path, outcomes: &Outcomes) -> Result<(), String> {
    fs::create_dir_all(directory).map_err(|error| format!("make {}: {error}", directory.display()))?;
    let mut texts = std::collections::BTreeMap::<&str, String>::new();
    for (name, outcome) in outcomes {
        let (family, case) = name.split_once('/').unwrap_or((name, ""));
        let text = texts.entry(family).or_default();
        writeln!(text, "{}: {outcome}", Value::from(case)).expect("a string can be written to");
    }
    for (family, text) in texts {
        let path = directory.join(format!("{family}.yaml"));
        fs::write(&path, text).map_err(|error| format!("write {}: {error}", path.display()))?;
    }
    Ok(())
}

/// Reads the outcomes of every family.
pub fn read(directory: &Path) -> Result<Outcomes, String> {
    let unreadable = |error| format!("read {}: {error}", directory.display());
    let mut outcomes = Outcomes::new();
    for entry in fs::read_dir(directory).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let family = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        let text = fs::read_to_string(&path).map_err(|error| format!("read {}: {error}", path.display()))?;
        for line in text.lines() {
            let wrong = |error: &dyn std::fmt::Display| format!("{}: {error}: {line}", path.display());
            let document: Value = serde_json::from_str(&format!("{{{line}}}")).map_err(|error| wrong(&error))?;
            let members = document.as_object().into_iter().flatten();
            outcomes.extend(members.map(|(case, outcome)| (format!("{family}/{case}"), outcome.clone())));
        }
    }
    Ok(outcomes)
}

//! The file of static tokens: a line each of `token,user,uid,"group1,group2"`.
// apiserver/pkg/authentication/token/tokenfile/tokenfile.go

use crate::authn::token::StaticToken;
use crate::authn::user::User;

/// Why a token file cannot be used.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenFileError {
    /// A line has too few columns.
    #[error("line {line}: expected at least 3 columns (token, user name, user uid), found {found}")]
    Columns {
        /// The number of the line.
        line: usize,
        /// How many columns it has.
        found: usize,
    },
    /// A quotation mark is missing or at the wrong place.
    #[error("line {line}: unexpected quotation mark, or none at the end")]
    Quote {
        /// The number of the line.
        line: usize,
    },
}

/// Reads a token file. Of equal tokens the last one counts; lines without a token are left out.
pub fn read(text: &str) -> Result<Vec<StaticToken>, TokenFileError> {
    let mut tokens = Vec::new();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let line_number = index + 1;
        let columns = columns(line).ok_or(TokenFileError::Quote { line: line_number })?;
        let [token, name, uid, rest @ ..] = &columns[..] else {
            return Err(TokenFileError::Columns { line: line_number, found: columns.len() });
        };
        if token.is_empty() {
            tracing::warn!(line = line_number, "a line of the token file has no token");
            continue;
        }
        let groups = rest.first().map(|groups| groups.split(',').map(str::to_owned).collect());
        let user = User {
            uid: uid.clone(),
            ..User::new(name, groups.unwrap_or_else(Vec::<String>::new))
        };
        tokens.push(StaticToken::new(token, user));
    }
    tokens.reverse();
    Ok(tokens)
}

/// The columns of a line; some are quoted, with quotation marks in them doubled.
fn columns(line: &str) -> Option<Vec<String>> {
    let mut columns = Vec::new();
    let mut rest = line;
    loop {
        let column = match rest.strip_prefix('"') {
            Some(quoted) => {
                let mut text = String::new();
                let mut left = quoted;
                loop {
                    let (part, after) = left.split_once('"')?;
                    text.push_str(part);
                    left = after;
                    let Some(after) = left.strip_prefix('"') else { break };
                    text.push('"');
                    left = after;
                }
                rest = left;
                text
            }
            None => {
                let end = rest.find(',').unwrap_or(rest.len());
                let (text, after) = rest.split_at(end);
                rest = after;
                (!text.contains('"')).then(|| text.to_owned())?
            }
        };
        columns.push(column);
        match rest.strip_prefix(',') {
            Some(after) => rest = after,
            None => return rest.is_empty().then_some(columns),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_may_be_quoted() {
        assert_eq!(columns(r#"t,ada,1,"a,b""#).unwrap(), ["t", "ada", "1", "a,b"]);
        assert_eq!(columns(r#"t,"a ""b""",""#).map(|_| ()), None);
        assert_eq!(columns(r#"t,"a ""b""","#).unwrap(), ["t", "a \"b\"", ""]);
        assert_eq!(columns(r#"t,a"b"#), None);
    }

    #[test]
    fn errors_name_the_line() {
        assert_eq!(read("t,ada,1\n\nt,ada").err(), Some(TokenFileError::Columns { line: 3, found: 2 }));
        assert_eq!(read("t,\"ada,1").err(), Some(TokenFileError::Quote { line: 1 }));
        assert_eq!(read("t,ada,1,\"a,b\"\n,nobody,2").unwrap().len(), 1);
    }
}

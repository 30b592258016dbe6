//! It's a parser (of brackets).

use std::collections::HashMap;

#[derive(Debug, Clone)]
pub struct Parser<'a> {
    text: &'a str,
    open: Vec<char>,
    seen: HashMap<char, Vec<Option<usize>>>,
}

impl<'a> Parser<'a> {
    pub fn new(text: &'a str) -> Self {
        Parser {
            text,
            open: vec![],
            seen: HashMap::new(),
        }
    }

    pub fn parse(&mut self) -> Result<usize, String> {
        if self.text.is_empty() {
            return Err(String::from("empty"));
        }
        for (place, sign) in self.text.chars().enumerate() {
            match sign {
                '(' | '[' | '{' => self.open.push(sign),
                ')' | ']' | '}' => {
                    if self.open.pop().is_none() {
                        return Err(format!("'{}' at {}", sign, place));
                    }
                }
                '\'' | '"' => continue,
                _ => {}
            }
            self.seen.entry(sign).or_default().push(Some(place));
        }
        Ok(self.open.len())
    }

    fn longest<'b>(&self, one: &'b str, other: &'b str) -> &'b str {
        if one.len() > other.len() {
            return one;
        }
        other
    }
}

#[test]
fn brackets_are_counted() {
    assert_eq!(Parser::new("(a)").parse(), Ok(0));
    assert_eq!(Parser::new("(a").parse(), Ok(1));
    assert!(Parser::new(r#"")"#).parse().is_err());
}

//! Replies that go through a script come out as they went in.

use proptest::prelude::*;

use super::*;

/// A reply, as commands encode them.
#[derive(Clone, Debug)]
enum Value {
    Bulk(Vec<u8>),
    Integer(i64),
    Status(String),
    Error(String),
    Null,
    Boolean(bool),
    Double(f64),
    BigNumber(String),
    Verbatim([u8; 3], Vec<u8>),
    Array(Vec<Value>),
    /// One pair at most: what order pairs have is not promised.
    Map(Option<Box<(Value, Value)>>),
    Set(Option<Box<Value>>),
}

impl Value {
    fn encode(&self, protocol: Protocol, out: &mut Vec<u8>) {
        match self {
            Value::Bulk(bytes) => crate::reply::Reply::new(out, protocol).bulk(bytes),
            Value::Integer(value) => crate::reply::Reply::new(out, protocol).integer(*value),
            Value::Status(text) => out.extend(format!("+{text}\r\n").bytes()),
            Value::Error(text) => out.extend(format!("-{text}\r\n").bytes()),
            Value::Null => crate::reply::Reply::new(out, protocol).null(),
            Value::Boolean(value) => crate::reply::Reply::new(out, protocol).boolean(*value),
            Value::Double(value) => crate::reply::Reply::new(out, protocol).double(*value),
            Value::BigNumber(digits) => out.extend(format!("({digits}\r\n").bytes()),
            Value::Verbatim(format, text) => {
                out.extend(format!("={}\r\n", text.len() + 4).bytes());
                out.extend(format);
                out.push(b':');
                out.extend(text);
                out.extend(b"\r\n");
            }
            Value::Array(values) => {
                crate::reply::Reply::new(out, protocol).array(values.len());
                values.iter().for_each(|value| value.encode(protocol, out));
            }
            Value::Map(pair) => {
                crate::reply::Reply::new(out, protocol).map(usize::from(pair.is_some()));
                if let Some(pair) = pair {
                    pair.0.encode(protocol, out);
                    pair.1.encode(protocol, out);
                }
            }
            Value::Set(member) => {
                crate::reply::Reply::new(out, protocol).set(usize::from(member.is_some()));
                if let Some(member) = member {
                    member.encode(protocol, out);
                }
            }
        }
    }
}

/// Whole numbers that a Lua number holds.
fn integer() -> impl Strategy<Value = i64> {
    -(1i64 << 53)..=(1i64 << 53)
}

/// What both protocols have. A null ends an array in RESP3, where it is nil, so it is not in here.
fn simple() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<Vec<u8>>().prop_map(Value::Bulk),
        integer().prop_map(Value::Integer),
        "[a-zA-Z ]{0,9}".prop_map(Value::Status),
        "[A-Z]{1,5} [a-z ]{0,8}[a-z]".prop_map(Value::Error),
    ]
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        4 => simple(),
        1 => any::<bool>().prop_map(Value::Boolean),
        1 => any::<f64>().prop_filter("NaN has no order", |value| !value.is_nan()).prop_map(Value::Double),
        1 => "-?[1-9][0-9]{0,40}".prop_map(Value::BigNumber),
        1 => (prop::array::uniform3(b'a'..=b'z'), any::<Vec<u8>>()).prop_map(|(format, text)| Value::Verbatim(format, text)),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(5, 40, 12, |inner| {
        prop_oneof![
            3 => prop::collection::vec(inner.clone(), 0..12).prop_map(Value::Array),
            1 => prop::option::of((simple(), inner)).prop_map(|pair| Value::Map(pair.map(Box::new))),
            1 => prop::option::of(simple()).prop_map(|member| Value::Set(member.map(Box::new))),
        ]
    })
}

fn resp2_value() -> impl Strategy<Value = Value> {
    prop_oneof![4 => simple(), 1 => Just(Value::Null)]
        .prop_recursive(5, 40, 12, |inner| prop::collection::vec(inner, 0..12).prop_map(Value::Array))
}

fn round_trip(script: &[u8], value: &Value, protocol: Protocol) -> (Vec<u8>, Vec<u8>) {
    thread_local! {
        static ENGINE: Engine = engine();
    }
    let mut encoded = Vec::new();
    value.encode(protocol, &mut encoded);
    let mut host = FakeHost::default();
    host.replies.insert("get", encoded.clone());
    let (reply, _) = ENGINE.with(|engine| run_with(engine, script, &mut host, protocol));
    (encoded, reply)
}

proptest! {
    #[test]
    fn replies_survive_in_resp3(value in value()) {
        let (before, after) = round_trip(b"redis.setresp(3) return redis.pcall('get')", &value, Protocol::Resp3);
        prop_assert_eq!(before, after);
    }

    #[test]
    fn replies_survive_in_resp2(value in resp2_value()) {
        let (before, after) = round_trip(b"return redis.pcall('get')", &value, Protocol::Resp2);
        prop_assert_eq!(before, after);
    }

    #[test]
    fn strings_arrive_as_words(words in prop::collection::vec(any::<Vec<u8>>(), 1..20)) {
        let engine = engine();
        let script = b"return redis.call('get', unpack(ARGV))";
        let digest = Digest::of(script);
        engine.load(digest, script).expect("compiles");
        let keys = OwnedArgs::new();
        let arguments: OwnedArgs = words.iter().collect();
        let call = ScriptCall { keys: keys.as_args(), arguments: arguments.as_args(), protocol: Protocol::Resp2 };
        let mut host = FakeHost::default();
        engine.run(&digest, &call, &mut host, &mut Vec::new());
        prop_assert_eq!(&host.called[0][1..], &words[..]);
    }

    #[test]
    fn whatever_a_host_replies_is_no_harm(reply in any::<Vec<u8>>(), script in 0..2usize) {
        let scripts: [&[u8]; 2] = [b"return redis.pcall('get')", b"redis.setresp(3) return redis.pcall('get')"];
        let engine = engine();
        let mut host = FakeHost::default();
        host.replies.insert("get", reply);
        let (got, _) = run_with(&engine, scripts[script], &mut host, Protocol::Resp3);
        prop_assert!(!got.is_empty());
    }
}

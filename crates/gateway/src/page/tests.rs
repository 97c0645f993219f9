use super::*;

const BROWSER: &str = "text/html,application/xhtml+xml,*/*;q=0.8";

fn ask(method: &Method, path: &str, headers: &[(header::HeaderName, &str)]) -> Option<Response> {
    let headers = headers.iter().map(|(name, value)| (name.clone(), value.parse().unwrap())).collect();
    response(method, &path.parse().unwrap(), &headers)
}

fn browse(path: &str) -> Option<Response> {
    ask(&Method::GET, path, &[(header::ACCEPT, BROWSER)])
}

fn header_of(response: &Response, name: header::HeaderName) -> &str {
    response.headers().get(name).map_or("", |value| value.to_str().unwrap())
}

/// A script of the page, by the name that its content gave it.
fn script() -> &'static str {
    let index = std::str::from_utf8(files::named(INDEX).unwrap().bytes).unwrap();
    let start = index.find("/assets/index-").unwrap();
    &index[start..start + index[start..].find('"').unwrap()]
}

#[test]
fn a_browser_gets_the_page_at_every_address_within_it() {
    for path in
        ["/", "/index.html", "/ask", "/runs", "/runs/a.b%2Fc", "/runs/8f2c?step=1", "/configuration/tool/a.b", "/x"]
    {
        let response = browse(path).unwrap_or_else(|| panic!("{path} is not the page"));
        assert_eq!(response.status(), StatusCode::OK, "{path}");
        assert_eq!(header_of(&response, header::CONTENT_TYPE), "text/html; charset=utf-8", "{path}");
        assert_eq!(header_of(&response, header::CACHE_CONTROL), "no-cache", "{path}");
    }
}

#[test]
fn the_page_takes_nothing_from_the_api() {
    let all = [
        "/api",
        "/api/v1/nothing",
        "/api/docs/x",
        "/v1/nothing",
        "/mcp",
        "/healthz",
        "/readyz",
        "/assets/gone.js",
        "/a.txt",
    ];
    for path in all {
        assert!(browse(path).is_none(), "{path}");
    }
    assert!(ask(&Method::POST, "/ask", &[(header::ACCEPT, BROWSER)]).is_none());
}

#[test]
fn programs_are_not_given_a_page_that_they_did_not_ask_for() {
    for accept in ["", "*/*", "application/json", "text/html;q=0, application/json", "text/*"] {
        for path in ["/", "/ask", "/runs/1"] {
            assert!(ask(&Method::GET, path, &[(header::ACCEPT, accept)]).is_none(), "{path} for {accept:?}");
        }
    }
}

#[test]
fn a_file_is_kept_for_ever_and_the_index_is_asked_for_again() {
    let response = ask(&Method::GET, script(), &[]).unwrap();
    assert_eq!(header_of(&response, header::CACHE_CONTROL), "public, max-age=31536000, immutable");
    assert_eq!(header_of(&response, header::CONTENT_TYPE), "text/javascript; charset=utf-8");
    let tag = header_of(&response, header::ETAG).to_owned();
    let again = ask(&Method::GET, script(), &[(header::IF_NONE_MATCH, &format!("\"x\", W/{tag}"))]).unwrap();
    assert_eq!(again.status(), StatusCode::NOT_MODIFIED);
    assert_eq!(ask(&Method::GET, script(), &[(header::IF_NONE_MATCH, "\"x\"")]).unwrap().status(), StatusCode::OK);
}

#[test]
fn files_are_packed_for_who_takes_them_so() {
    let packed = ask(&Method::GET, script(), &[(header::ACCEPT_ENCODING, "br, gzip;q=0.8")]).unwrap();
    assert_eq!(header_of(&packed, header::CONTENT_ENCODING), "gzip");
    for coding in ["", "br", "gzip;q=0"] {
        let plain = ask(&Method::GET, script(), &[(header::ACCEPT_ENCODING, coding)]).unwrap();
        assert_eq!(header_of(&plain, header::CONTENT_ENCODING), "", "{coding:?}");
    }
}

#[test]
fn nothing_of_others_may_run_or_be_loaded() {
    let response = browse("/").unwrap();
    let policy = header_of(&response, header::CONTENT_SECURITY_POLICY);
    for part in ["default-src 'self'", "object-src 'none'", "base-uri 'none'", "frame-ancestors 'none'"] {
        assert!(policy.contains(part), "{policy}");
    }
    assert!(!policy.contains("unsafe") && !policy.contains("http"), "{policy}");
    let index = std::str::from_utf8(files::named(INDEX).unwrap().bytes).unwrap();
    assert!(!index.contains("style=") && !index.contains("http:") && !index.contains("https:"), "{index}");
}

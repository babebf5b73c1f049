// SPDX-License-Identifier: Apache-2.0
//! The sections of a command's help and manual page that its arguments do not give: examples, exit status, files.

/// A term and its explanation.
pub type Term = (&'static str, &'static str);

/// The sections of one command.
#[derive(Clone, Copy, Debug)]
pub struct Supplement {
    /// The name of the subcommand; empty for `sluice` alone.
    pub command: &'static str,
    /// The explanations and the command lines.
    pub examples: &'static [Term],
    /// The values of the exit status, and their meanings.
    pub exit_status: &'static [Term],
    /// The files that the command reads or writes.
    pub files: &'static [Term],
}

impl Supplement {
    /// The sections of a subcommand; `sluice` alone has an empty name.
    pub fn of(command: &str) -> Option<&'static Self> {
        ALL.iter().find(|known| known.command == command)
    }

    /// The end of the text of `--help`.
    pub fn help(&self) -> String {
        let mut text = String::from("Examples:\n");
        for (meaning, line) in self.examples {
            text += &format!("  # {meaning}\n  {line}\n");
        }
        text += "\nExit status:\n";
        for (status, meaning) in self.exit_status {
            text += &format!("  {status:<4} {meaning}\n");
        }
        text
    }
}

const WRONG_ARGUMENTS: Term = ("2", "The arguments are wrong");
/// The exit status of a command that only prints.
const PRINTED: &[Term] = &[
    ("0", "Done"),
    ("1", "Standard output cannot be written"),
    WRONG_ARGUMENTS,
];
const SITES: Term = (
    "SITES, POLICY",
    "The files of sites and policies that these settings name, and the policies that sites name",
);
const CERTIFICATES: Term = (
    "SLUICE_TLS_CERT, SLUICE_TLS_KEY",
    "The certificates and keys that these settings and the sites name",
);
const STATE: Term = (
    "SLUICE_STATE",
    "The folder of the state, .sluice/state by default, with Envoy's configuration and the socket of its admin interface",
);

/// The exit status of a command that asks a running edge.
const ANSWERED: &[Term] = &[
    ("0", "Done"),
    (
        "1",
        "The edge or its filter does not answer; the message names the socket",
    ),
    WRONG_ARGUMENTS,
];
const CONTROL: Term = (
    "SLUICE_STATE/ctl-SLUICE_EDGE_PORT.sock",
    "The control socket of the edge, which only the user of the edge can open",
);

/// The sections of every command.
pub const ALL: &[Supplement] = &[
    Supplement {
        command: "",
        examples: &[
            (
                "Serve a bucket of AWS on 127.0.0.1:8080",
                "SLUICE_ORIGIN=s3://my-bucket AWS_REGION=eu-central-1 sluice",
            ),
            (
                "Serve an application, and start again after a fault",
                "SLUICE_ORIGIN=http://127.0.0.1:3000 sluice --restart",
            ),
        ],
        exit_status: &[
            ("0", "The edge was told to stop"),
            (
                "1",
                "The start was refused, or a part of the edge has failed; the messages have the reason",
            ),
            WRONG_ARGUMENTS,
            (
                "128+",
                "128 plus the number of the signal that has ended Envoy, and the edge with it",
            ),
        ],
        files: &[
            STATE,
            (
                "SLUICE_CACHE_DIR",
                "The folder of the cache, by default the folder cache in the folder of the state",
            ),
            SITES,
            CERTIFICATES,
            (
                "/etc/sluice/sluice.env",
                "The settings of sluice.service, the unit for systemd",
            ),
        ],
    },
    Supplement {
        command: "render",
        examples: &[(
            "Show Envoy's configuration for an application",
            "SLUICE_ORIGIN=http://127.0.0.1:3000 sluice render",
        )],
        exit_status: &[
            ("0", "Done"),
            (
                "1",
                "The settings or the files have a problem; the messages have the reason",
            ),
            WRONG_ARGUMENTS,
        ],
        files: &[SITES, CERTIFICATES],
    },
    Supplement {
        command: "settings",
        examples: &[
            (
                "Make a file of settings for sluice.service",
                "sluice settings --format env > sluice.env",
            ),
            (
                "List the names of all settings",
                "sluice settings --format json | jq --raw-output '.[].name'",
            ),
        ],
        exit_status: PRINTED,
        files: &[],
    },
    Supplement {
        command: "check",
        examples: &[
            (
                "Check a file of sites in CI",
                "SLUICE_SITES=sites.yaml sluice check",
            ),
            (
                "Also ask the bucket whether the credentials are right",
                "SLUICE_ORIGIN=s3://my-bucket sluice check --online",
            ),
            (
                "Print the places of the problems",
                "SLUICE_SITES=sites.yaml sluice check --json | jq --raw-output '.[] | \"\\(.file):\\(.line)\"'",
            ),
        ],
        exit_status: &[
            ("0", "No problem was found; there may be warnings"),
            ("1", "A problem was found"),
            WRONG_ARGUMENTS,
        ],
        files: &[SITES, CERTIFICATES],
    },
    Supplement {
        command: "healthcheck",
        examples: &[
            (
                "Ask the edge on port 9000",
                "SLUICE_EDGE_PORT=9000 sluice healthcheck && echo ready",
            ),
            (
                "Ask an edge on another machine",
                "sluice healthcheck http://edge:8080/healthz",
            ),
        ],
        exit_status: &[
            ("0", "The edge is ready"),
            (
                "1",
                "The edge does not answer, is not ready, or drains, or a setting is wrong",
            ),
            WRONG_ARGUMENTS,
        ],
        files: &[SITES, CERTIFICATES],
    },
    Supplement {
        command: "module",
        examples: &[(
            "Copy the module to the folder of another proxy",
            "sluice module /srv/proxy/sluice.wasm",
        )],
        exit_status: &[
            ("0", "Done"),
            (
                "1",
                "The module cannot be read, or the file cannot be written",
            ),
            WRONG_ARGUMENTS,
        ],
        files: &[(
            "SLUICE_WASM",
            "The module, by default sluice.wasm in the folder of the program",
        )],
    },
    Supplement {
        command: "schema",
        examples: &[
            (
                "Write the schema of a file of sites for an editor",
                "sluice schema sites > sites.schema.json",
            ),
            ("Print the schema of a policy", "sluice schema policy"),
        ],
        exit_status: PRINTED,
        files: &[],
    },
    Supplement {
        command: "version",
        examples: &[
            ("Print the version", "sluice version"),
            (
                "Print the version of Envoy that this build needs",
                "sluice version --json | jq --raw-output .envoy",
            ),
        ],
        exit_status: PRINTED,
        files: &[],
    },
    Supplement {
        command: "du",
        examples: &[
            ("See how much of its share each site uses", "sluice du"),
            (
                "Find the largest folders of a site",
                "sluice du --by prefix --depth 2 --site assets --top 10",
            ),
            (
                "See which media types fill the cache",
                "sluice du --by type",
            ),
        ],
        exit_status: ANSWERED,
        files: &[CONTROL],
    },
    Supplement {
        command: "explain",
        examples: &[
            (
                "See whether a URL is stored, for how long, and what a GET would get",
                "sluice explain https://www.example.com/app.css",
            ),
            (
                "Also ask the origin, to see why a page is not stored",
                "sluice explain https://shop.example.com/cart --online",
            ),
        ],
        exit_status: ANSWERED,
        files: &[CONTROL],
    },
    Supplement {
        command: "flights",
        examples: &[
            ("See what is being fetched", "sluice flights"),
            (
                "Count the requests that wait",
                "sluice flights --json | jq '[.flights[].waiting] | add'",
            ),
        ],
        exit_status: ANSWERED,
        files: &[CONTROL],
    },
    Supplement {
        command: "log",
        examples: &[
            (
                "Follow the requests of a site that were slow and not hits",
                "sluice log --follow 'site=shop result!=hit duration>500ms'",
            ),
            (
                "Follow the errors below a path",
                "sluice log --follow 'status>=500 path~/api/'",
            ),
            ("See the last requests", "sluice log"),
        ],
        exit_status: ANSWERED,
        files: &[CONTROL],
    },
    Supplement {
        command: "origins",
        examples: &[
            ("See which origin is slow or fails", "sluice origins"),
            (
                "List the sites whose bucket has asked for fewer requests",
                "sluice origins --json | jq '.origins[] | select(.bucket_errors.throttled) | .site'",
            ),
        ],
        exit_status: ANSWERED,
        files: &[CONTROL],
    },
    Supplement {
        command: "purge",
        examples: &[
            (
                "Purge two URLs",
                "sluice purge --url https://www.example.com/ --url https://www.example.com/app.css",
            ),
            (
                "Have the responses with a surrogate key revalidated",
                "sluice purge --site assets --key article-7 --soft",
            ),
            ("Purge a site", "sluice purge --site assets"),
            (
                "Purge in every edge that reads the feed in the bucket, without a running edge",
                "SLUICE_ORIGIN=s3://my-bucket sluice purge --feed --prefix https://www.example.com/assets/",
            ),
        ],
        exit_status: &[
            (
                "0",
                "Every worker has confirmed the purges, or they are in the feed",
            ),
            (
                "1",
                "The edge does not answer, a purge was refused, a worker has not confirmed one, or the feed was not written",
            ),
            WRONG_ARGUMENTS,
        ],
        files: &[CONTROL],
    },
    Supplement {
        command: "purges",
        examples: &[
            (
                "See what was purged, when and by which caller",
                "sluice purges",
            ),
            (
                "List the purges that a worker has not confirmed",
                "sluice purges --number 1000 --json | jq '.purges[] | select(.status != 200)'",
            ),
        ],
        exit_status: ANSWERED,
        files: &[CONTROL],
    },
    Supplement {
        command: "top",
        examples: &[
            (
                "Watch the sites and the URLs with the most requests",
                "sluice top",
            ),
            (
                "See which URLs of a site cost its origin the most time",
                "sluice top --once --site shop --sort origin",
            ),
            (
                "Watch an edge in Kubernetes",
                "kubectl exec pod/edge-0 -- sluice top --once",
            ),
        ],
        exit_status: ANSWERED,
        files: &[CONTROL],
    },
    Supplement {
        command: "man",
        examples: &[
            ("Read the page of the edge", "sluice man | man -l -"),
            (
                "Install all pages for this machine",
                "sluice man /usr/local/share/man/man1",
            ),
        ],
        exit_status: &[
            ("0", "Done"),
            ("1", "A page cannot be written"),
            WRONG_ARGUMENTS,
        ],
        files: &[],
    },
    Supplement {
        command: "completions",
        examples: &[
            (
                "Complete the arguments in this Bash",
                "source <(sluice completions bash)",
            ),
            (
                "Install the script for Fish",
                "sluice completions fish > ~/.config/fish/completions/sluice.fish",
            ),
        ],
        exit_status: PRINTED,
        files: &[],
    },
    Supplement {
        command: "seal",
        examples: &[(
            "The sealed form of the key 2026a, for the policy of a gateway",
            "sluice seal 2026a --key signing-key.txt --secret secret.txt",
        )],
        exit_status: &[
            ("0", "The sealed key is on standard output"),
            (
                "1",
                "A file cannot be read, the key is too short or too long, or the secret is not 32 hexadecimal digits",
            ),
            WRONG_ARGUMENTS,
        ],
        files: &[],
    },
    Supplement {
        command: "sign",
        examples: &[
            (
                "A link that opens one file for an hour",
                "sluice sign https://www.example.com/report.pdf --expires 1h",
            ),
            (
                "A cookie that opens all files of a film for a day",
                "sluice sign https://www.example.com/films/7/ --prefix --cookie --expires 1d",
            ),
        ],
        exit_status: &[
            ("0", "The signature is on standard output"),
            (
                "1",
                "The settings are not valid, or the site of the URL has no such key",
            ),
            WRONG_ARGUMENTS,
        ],
        files: &[
            SITES,
            (
                "SLUICE_ACCESS",
                "The file with the clients that the edge answers, and the files with keys that this file or a site names",
            ),
        ],
    },
    Supplement {
        command: "warm",
        examples: &[
            (
                "Request the pages of a sitemap, at most 50 in a second",
                "sluice warm --sitemap https://www.example.com/sitemap.xml --rate 50",
            ),
            (
                "Request the objects of a bucket below a prefix from one edge",
                "sluice warm --bucket-prefix films/ --base https://www.example.com/ --connect 127.0.0.1:8443",
            ),
        ],
        exit_status: &[
            ("0", "Each request had a response that is not an error"),
            (
                "1",
                "A request has failed, or the list, the sitemap or the bucket could not be read",
            ),
            WRONG_ARGUMENTS,
        ],
        files: &[(
            "SSL_CERT_FILE",
            "The CA certificates that verify the edge, if URLs begin with https://",
        )],
    },
];

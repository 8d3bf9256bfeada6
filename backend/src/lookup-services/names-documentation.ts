export const NAMES_LOOKUP_DOCUMENTATION = `# ls_names

Queries about the mine tree that \`tm_names\` follows. Every answer is a list of outputs with BEEF.

| query | answer |
| --- | --- |
| \`{"name": "alice"}\` | the current output of the name; nothing if the name is not claimed or was burnt |
| \`{"origin": "alice"}\` | the output in which the name was minted |
| \`{"mine": "alice"}\` | the live node of the longest mined prefix, from which mining continues; nothing if the name is taken |
| \`{"node": "ali"}\` | the live node of exactly this prefix |
| \`{"origins": ["<txid>_<vout>"]}\` | those of the outpoints that are origins of genuine names; at most 1,000 |
| \`{"prefix": "al", "limit": 100, "after": "alf"}\` | origins sorted by name, starting after \`after\`; at most 100 |

A page of a prefix may have fewer outputs than its limit, because its BEEF is limited in bytes; JSON then says
\`"truncated": true\`. Only an empty page is the last: continue with the name of the last output.

The first four accept \`"history": true\`. The BEEF then holds everything that proves the output genuine (BRC-174 section 4), each
transaction once, parents before children, the output's own last. For an origin or a node, that is every transaction that
spends a node on the way from genesis to it. For a current output, it is these, every transaction of the ordinal from the
origin on, and those whose values place it. Transactions that this host does not have are left out, and a verifier finds
where the history ends.

An answer with history is JSON even if the SDK's client asks for binary (\`X-Aggregation: yes\`), because that client drops
everything behind a proven output from a binary BEEF. Send \`Accept: application/octet-stream\` to get binary. An engine that
does not assemble BEEF as this project's server does gets a selector instead; 0.4.6 of \`@bsv/overlay\` fails on it.

Transfers are known through \`tm_ordinals\`. A host that does not run it answers \`{"name"}\` with the origin.
`

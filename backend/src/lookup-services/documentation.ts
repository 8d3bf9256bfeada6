export const NAMES_LOOKUP_DOCUMENTATION = `# ls_names

Queries about the mine tree that \`tm_names\` follows. Every answer is a list of outputs with BEEF.

| query | answer |
| --- | --- |
| \`{"name": "alice"}\` | the current output of the name; nothing if the name is not claimed or was burnt |
| \`{"origin": "alice"}\` | the output in which the name was minted |
| \`{"mine": "alice"}\` | the live node of the longest mined prefix, from which mining continues; nothing if the name is taken |
| \`{"node": "ali"}\` | the live node of exactly this prefix |
| \`{"outpoint": "<txid>_<vout>"}\` | that output, spent or not, if it is a node or holds a name |
| \`{"origins": ["<txid>_<vout>"]}\` | those of the outpoints that are origins of genuine names, in the order asked; at most 1,000 are asked for, and 256 answered. Continue with \`"after"\`, the last outpoint of the page |
| \`{"prefix": "al", "limit": 100, "after": "alf"}\` | origins sorted by name, starting after \`after\`; at most 100 |

A page of origins or of a prefix may have fewer outputs than its limit, because its BEEF is limited in bytes; JSON then says
\`"truncated": true\`. Only an empty page is the last: continue with the outpoint, or the name, of the last output.

Clients of \`@bsv/sdk\` 3 hold answers over 4 MiB or 256 outputs against a host. Pages stay below that with the limits of this
host by default, unless a single output and its unproven ancestors are larger. So does a history that the SDK's client asks for:
it is read in parts, see below.

The first five accept \`"history": true\`. The BEEF then holds everything that proves the output genuine (BRC-174 section 4), each
transaction once, parents before children, the output's own last. For an origin or a node, that is every transaction that
spends a node on the way from genesis to it. For a current output, it is these, every transaction of the ordinal from the
origin on, and those whose values place it. Transactions that this host does not have are left out, and a verifier finds
where the history ends. \`{"name": "alice", "history": true, "known": ["<txid>_<vout>"]}\` leaves out what the caller has
verified: the mints up to the last of which an output is listed, and the steps of the ordinal up to the last that is listed. At
most 16 outpoints; others are ignored.

Histories grow with every mint from the nodes on the way, so read them in parts: with \`"maxBytes"\`, a history of more bytes
ends with the last step on the way that fits, or with the first. The output of the answer is then that of the step: a node on
the way, or for a name the origin of an earlier name. Verify it, and ask again with it in \`known\`. Without
\`"maxBytes"\`, the SDK's client (\`X-Aggregation: yes\`) gets 1,000,000 bytes at a time, as JSON takes four times as much; others get
all of it.

An answer with history is JSON even if the SDK's client asks for binary (\`X-Aggregation: yes\`), because that client drops
everything behind a proven output from a binary BEEF. Send \`Accept: application/octet-stream\` to get binary.

Clients of OpNS overlays may ask as they do there: \`{"domain": "alice"}\` is \`{"name": "alice"}\`, and \`{"event": …}\` finds the
unspent output of \`opns:<name>\`, \`mine:<prefix>\` or \`origin:<outpoint>\`. As there is one at most, \`limit\`, \`from\` and \`rev\`
are accepted and change nothing; with \`"spent": true\` there is none.

Transfers are known through \`tm_ordinals\`. A host that does not run it answers \`{"name"}\` with the origin.
`

/** How the engine of another host treats histories. */
export const HOST_HISTORY = `
The engine of this host cannot put histories together: with \`"history": true\` it answers as without, with the output and the BEEF
in which it was submitted. Where the host has the routes of the gateway, those answer the query, with its history.
`

export const ORDINALS_LOOKUP_DOCUMENTATION = `# ls_ordinals

Queries about the ordinals and content that \`tm_ordinals\` holds. Every answer is a list of outputs with BEEF.

| query | answer |
| --- | --- |
| \`{"outpoint": "<txid>_<vout>"}\` | that output, or nothing if this host does not have it |
| \`{"outpoint": "<txid>_<vout>", "seq": 3}\` | the ordinal in that output, at a step of its lineage: \`0\` and \`-2\` are its origin, \`-1\` its current output; nothing if there is no such step or the origin is unknown here |
| \`{"map": {"app": "shop", "type": "card"}}\` | the current outputs of ordinals whose metadata, merged from the origin on, has all of these entries, with texts as inscribed; a list matches by each of its texts. At most 16 entries. An ordinal is found by its first 16 entries, and by up to 256 if its metadata is long |
| \`{"parent": "<txid>_<vout>"}\` | the current outputs of ordinals whose latest inscription with a parent names this one |
| \`{"contentType": "image/png"}\` | the current outputs of ordinals whose latest content has this type, with any parameters |
| \`{"owner": "<address>"}\` | the unspent coins of this P2PKH address |

The last four accept a \`limit\` of 1 to 100 (default 100), and \`after\`: the last outpoint of the previous page. A page may have
fewer outputs than its limit, because its BEEF is limited in bytes; JSON then says \`"truncated": true\`. Only an empty page is
the last. Ordinals keep their order while they move. The current output of a burnt ordinal is its last one, which is spent.
Except by owner, an ordinal is found only if its origin is known here.
`

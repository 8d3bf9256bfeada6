export const NAMES_LOOKUP_DOCUMENTATION = `# ls_names

Questions about the mine tree that \`tm_names\` follows. Every answer is a list of outputs with BEEF.

| query | answer |
| --- | --- |
| \`{"name": "alice"}\` | the name's current output: where its ordinal is now; nothing where it is not claimed or was burnt |
| \`{"origin": "alice"}\` | the output in which the name was minted |
| \`{"mine": "alice"}\` | the live node of the longest mined prefix, from which mining goes on; nothing where the name is taken |
| \`{"node": "ali"}\` | the live node of exactly this prefix |
| \`{"origins": ["<txid>_<vout>"]}\` | those of the outpoints that are origins of genuine names; at most 1,000 |
| \`{"prefix": "al", "limit": 100, "after": "alf"}\` | origins in order of their names, from behind \`after\` on; at most 100 |

Transfers are known through \`tm_ordinals\`. A host that does not run it answers \`{"name"}\` with the origin.
`

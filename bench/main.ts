import { admission } from './admission.js'
import { bundles } from './bundles.js'
import { clients } from './clients.js'
import { conflicts } from './conflicts.js'
import { constants } from './constants.js'
import { costs } from './costs.js'
import { covenant } from './covenant.js'
import { facts } from './facts.js'
import { follow } from './follow.js'
import { gateway } from './gateway.js'
import { headers } from './headers.js'
import { host } from './host.js'
import { images } from './images.js'
import { inscriptions } from './inscriptions.js'
import { large } from './large.js'
import { lists } from './lists.js'
import { lookups } from './lookups.js'
import { memory } from './memory.js'
import { pages } from './pages.js'
import { patches } from './patches.js'
import { proof } from './proof.js'
import { proofCheck } from './proof-check.js'
import { reorg } from './reorg.js'
import { resolving } from './resolving.js'
import { search } from './search.js'
import { segments } from './segments.js'
import { shared } from './shared.js'
import { start } from './start.js'
import { storedBytes } from './stored-bytes.js'
import { stores } from './stores.js'
import { streams } from './streams.js'
import { sync } from './sync.js'
import { verifiedFetches } from './verified-fetch.js'

/** Speed and size, each as a ratio to something run beside it (docs/contributing.md). Run: `npm run bench`. */
const benches = {
  admission,
  inscriptions,
  lookups,
  gateway,
  lists,
  pages,
  patches,
  large,
  images,
  'stored-bytes': storedBytes,
  constants,
  memory,
  start,
  streams,
  covenant,
  search,
  proof,
  'proof-check': proofCheck,
  segments,
  headers,
  reorg,
  sync,
  stores,
  shared,
  host,
  follow,
  costs,
  conflicts,
  facts,
  clients,
  bundles,
  resolving,
  'verified-fetch': verifiedFetches,
}

const wanted = process.argv.slice(2)
/** Names of something within a bench. */
const within = wanted.filter((name) => !Object.hasOwn(benches, name))
for (const [name, run] of Object.entries(benches)) {
  if (wanted.length > 0 && !wanted.includes(name)) continue
  process.stdout.write(`\n${name}\n`)
  for await (const line of run(within)) process.stdout.write(`  ${line}\n`)
}

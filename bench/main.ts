import { constants } from './constants.js'
import { costs } from './costs.js'
import { facts } from './facts.js'
import { follow } from './follow.js'
import { gateway } from './gateway.js'
import { host } from './host.js'
import { imports } from './imports.js'
import { reorg } from './reorg.js'
import { search } from './search.js'
import { shared } from './shared.js'

/** Speed and size, each as a ratio to something measured beside it (docs/contributing.md). Run: `npm run bench`. */
const benches = {
  imports,
  gateway,
  constants,
  search,
  reorg,
  shared,
  host,
  follow,
  costs,
  facts,
}

const wanted = process.argv.slice(2)
/** The arguments for the benches, such as names of parts. */
const within = wanted.filter((name) => !Object.hasOwn(benches, name))
if (wanted.length > 0 && within.length === wanted.length) {
  process.stderr.write(`${wanted.join(' ')} is no bench. There are: ${Object.keys(benches).join(', ')}.\n`)
  process.exit(1)
}
for (const [name, run] of Object.entries(benches)) {
  if (wanted.length > 0 && !wanted.includes(name)) continue
  process.stdout.write(`\n${name}\n`)
  for await (const line of run(within)) process.stdout.write(`  ${line}\n`)
}

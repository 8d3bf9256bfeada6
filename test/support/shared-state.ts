import { shareIndex } from '../../backend/src/read/host-index.js'
import './equal-bytes.js'

// What the suites of a worker share, as they share its modules: each finds it as it was, whatever the one before it left.

const REPLACED: [of: object, name: string][] = [
  [performance, 'now'],
  [Date, 'now'],
  [JSON, 'parse'],
  [globalThis, 'fetch'],
  [globalThis, 'setTimeout'],
]
const before = REPLACED.map(([of, name]) => Reflect.get(of, name))
const environment = { ...process.env }

afterAll(() => {
  // Topic managers of the next suite would consult the index of this one's host.
  shareIndex(undefined)
  for (const name of Object.keys(process.env)) if (!(name in environment)) delete process.env[name]
  Object.assign(process.env, environment)
  for (const [at, [of, name]] of REPLACED.entries()) Reflect.set(of, name, before[at])
})

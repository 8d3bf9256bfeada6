import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** Collects garbage. V8 keeps no flag of that: what it has compiled is only for those that have the same flags. */
export const collectGarbage = ((): (() => void) => {
  setFlagsFromString('--expose-gc')
  try {
    return runInNewContext('gc') as () => void
  } finally {
    setFlagsFromString('--no-expose-gc')
  }
})()

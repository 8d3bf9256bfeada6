import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

const collect = ((): (() => void) => {
  setFlagsFromString('--expose-gc')
  try {
    return runInNewContext('gc') as () => void
  } finally {
    // Code that V8 compiled is only for those that have the same flags.
    setFlagsFromString('--no-expose-gc')
  }
})()

/** Collects garbage. The bytes of dead buffers are freed beside this thread: only the next collection waits for that. */
export function collectGarbage(): void {
  collect()
  collect()
}

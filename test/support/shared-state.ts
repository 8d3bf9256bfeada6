import { shareIndex } from '../../backend/src/read/host-index.js'

// What the suites of a worker share, as they share its modules: each leaves it as it was.

const { now } = performance

afterAll(() => {
  // Topic managers of the next suite would consult the index of this one's host.
  shareIndex(undefined)
  if (performance.now === now) return
  // The searches and limits of later suites would run without end.
  performance.now = now
  throw new Error('this suite has left the clock of its worker replaced')
})

import { afterAll } from '@jest/globals'

const { now } = performance

/** The suites of a worker share its clock. One that stopped would have the searches and limits of later suites run without end. */
afterAll(() => {
  if (performance.now === now) return
  performance.now = now
  throw new Error('this suite has left the clock of its worker replaced')
})

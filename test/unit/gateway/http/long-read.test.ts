import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { setImmediate } from 'node:timers/promises'
import type { Response } from 'express'
import { longRead } from '../../../../src/gateway/http/long-read.js'

/** More reads than a short response has. */
const MANY = 201
/** As many long responses as are prepared at once. */
const LONG = 2

const response = (): Response => new ServerResponse(new IncomingMessage(new Socket())) as unknown as Response

test('a read that fails while its response waits for others is an error of that response alone', async () => {
  const unhandled: unknown[] = []
  const note = (reason: unknown): void => void unhandled.push(reason)
  process.on('unhandledRejection', note)
  let leave = (): void => {}
  const left = new Promise<void>((resolve) => {
    leave = resolve
  })
  const others = Array.from({ length: LONG }, () =>
    longRead(response(), async (pace) => {
      for (let reads = 0; reads < MANY; reads++) await pace()
      await left
    }),
  )
  let fail = (): void => {}
  const failing = new Promise<void>((resolve) => {
    fail = resolve
  })
  const answer = longRead(response(), async (pace) => {
    for (let reads = 0; reads < MANY - 1; reads++) await pace()
    const turn = pace()
    fail()
    await turn
    throw new Error('damaged')
  })
  const outcome = expect(answer).rejects.toThrow('damaged')
  await failing
  // Rejections without a handler are reported once the microtasks are done.
  await setImmediate()
  await setImmediate()
  leave()
  await outcome
  await Promise.all(others)
  process.off('unhandledRejection', note)
  expect(unhandled).toEqual([])
})

import type { Request, Response } from 'express'
import { logPosition } from '../../../../src/server/http/log-position.js'
import { passTime } from '../../../support/server/waiting.js'

test('a read waits for a position for two seconds, and is answered then', async () => {
  const answered = new Promise<void>((resolve) => {
    const request = { method: 'GET', headers: { 'x-log-position': '9007199254740991' } }
    logPosition(() => 0)(request as never as Request, { writeHead() {} } as never as Response, () =>
      resolve(),
    )
  })
  passTime(2000)
  await answered
})

import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import express from 'express'
import { answerCpuTime } from './process-folder.js'

/** Where the apps listen, in the order of the URLs. */
export type BareReady = string[]

/** The process of the bare Express apps: for each URL that it is given, one that answers every request with what that answers. */
const apps = await Promise.all(process.argv.slice(2).map(appLike))
process.once('disconnect', () => process.exit())
answerCpuTime()
process.send?.(apps satisfies BareReady)

async function appLike(url: string): Promise<string> {
  const answer = await fetch(url)
  const body = Buffer.from(await answer.arrayBuffer())
  const headers = [...answer.headers].filter(([name]) => !['connection', 'date', 'keep-alive'].includes(name))
  const app = express()
    .disable('x-powered-by')
    .disable('etag')
    .get('/content/:outpoint', (_request, response) => {
      for (const [name, value] of headers) response.setHeader(name, value)
      response.end(body)
    })
  const host = createServer(app).listen(0, '127.0.0.1')
  await once(host, 'listening')
  return `http://127.0.0.1:${(host.address() as AddressInfo).port}`
}

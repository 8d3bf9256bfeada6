import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import express from 'express'
import { answerCpuTime } from './process-folder.js'

/** The URLs of two servers that answer like a given URL: one of `node:http` alone, one of Express. */
export interface Bare {
  node: string
  express: string
}

/** A request whose answer the servers copy. */
export interface Likeness {
  url: string
  headers: Record<string, string> | undefined
}

/** In the order of the likenesses. */
export type BareReady = Bare[]

/** The process of the bare servers: for each {@link Likeness}, given as JSON, it starts two that answer every request like it. */
const servers = await Promise.all(process.argv.slice(2).map(serversLike))
process.once('disconnect', () => process.exit())
answerCpuTime()
process.send?.(servers satisfies BareReady)

async function serversLike(json: string): Promise<Bare> {
  const { url, headers: asked } = JSON.parse(json) as Likeness
  const answer = await fetch(url, asked && { headers: asked })
  const body = Buffer.from(await answer.arrayBuffer())
  const headers = [...answer.headers].filter(([name]) => !['connection', 'date', 'keep-alive'].includes(name))
  const flat = headers.flat()
  const app = express()
    .disable('x-powered-by')
    .disable('etag')
    .get(/^\//, (_request, response) => {
      response.status(answer.status)
      for (const [name, value] of headers) response.setHeader(name, value)
      response.end(body)
    })
  return {
    node: await listening((_request, response) => void response.writeHead(answer.status, flat).end(body)),
    express: await listening(app),
  }
}

async function listening(listener: RequestListener): Promise<string> {
  const host = createServer(listener).listen(0, '127.0.0.1')
  await once(host, 'listening')
  return `http://127.0.0.1:${(host.address() as AddressInfo).port}`
}

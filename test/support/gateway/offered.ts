import type { OpenapiDocument } from '../../../src/gateway/openapi/document.js'
import type { Answer, Question } from '../server/test-server.js'

type Ask = (path: string, question?: Question) => Promise<Answer>

/** What stands for the parameters of paths: some of it is there, and some is not. */
export interface PathParameters {
  outpoint: string
  name: string
}

/** The document of a host, and each of its operations as a request below `path`. */
export async function offeredRequests(
  ask: Ask,
  { outpoint, name, path = '' }: PathParameters & { path?: string },
): Promise<{ document: OpenapiDocument; requests: [asked: string, answer: Answer][] }> {
  const answer = await ask(`${path}/openapi.json`)
  const document = answer.json as OpenapiDocument
  const values: Record<string, string> = {
    ...{ outpoint, name, reference: outpoint, txid: outpoint.slice(0, 64) },
    ...{ domain: name, html: 'YWJj', filepath: 'index.html', file: 'main.js' },
  }
  const requests: [string, Answer][] = []
  const [server] = document.servers
  const base = server?.url === '/' ? '' : (server?.url ?? '')
  for (const [template, item] of Object.entries(document.paths)) {
    const asked = base + template.replace(/\{(\w+)\}/g, (_, parameter) => values[parameter] ?? parameter)
    for (const method of Object.keys(item)) {
      const headers = { 'Content-Type': 'application/json' }
      const question =
        method === 'post' ? { method: 'POST', headers, body: '[]' } : { method: method.toUpperCase() }
      requests.push([`${method} ${asked}`, await ask(asked, question)])
    }
  }
  return { document, requests }
}

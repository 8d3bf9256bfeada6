import type { VNode } from 'preact'
import { renderPage, type Site } from './page.js'
import { Head } from './parts.js'
import { shown } from './text.js'

interface Described {
  description?: string
}

interface OperationView {
  operationId: string
  tags: string[]
  summary: string
  description?: string
  parameters: (Described & { name: string; in: string; required: boolean })[]
  requestBody?: Described & { content: Record<string, unknown> }
  responses: Record<string, Described & { content?: Record<string, unknown> }>
}

/** The part of an OpenAPI document that the page shows. */
export interface ApiView {
  info: { title: string; version: string; description: string }
  tags: { name: string; description: string }[]
  paths: Record<string, { get?: OperationView; post?: OperationView }>
}

interface Listed extends OperationView {
  path: string
  method: 'GET' | 'POST'
}

export function apiPage({ site, api }: { site: Site; api: ApiView }): string {
  const operations: Listed[] = Object.entries(api.paths).flatMap(([path, { get, post }]) => [
    ...(get ? [{ ...get, path, method: 'GET' as const }] : []),
    ...(post ? [{ ...post, path, method: 'POST' as const }] : []),
  ])
  const groups = api.tags.map((tag) => ({
    ...tag,
    // A route with several prefixes is listed once.
    operations: operations.filter(
      ({ tags, operationId }) => tags.includes(tag.name) && !/\d$/.test(operationId),
    ),
  }))
  return renderPage({
    site,
    title: 'API',
    description: 'Every route of this host, with its parameters, answers and errors.',
    section: 'api',
    path: '/api',
    children: (
      <>
        <Head title="API" lede="Every route of this host. Pages of any origin may send requests to them.">
          <div class="actions">
            <a class="btn ghost" href="/openapi.json">
              openapi.json
            </a>
          </div>
        </Head>
        <div class="api">
          <nav aria-label="Groups">
            {groups.map(({ name }) => (
              <a key={name} href={`#${name}`}>
                {name}
              </a>
            ))}
          </nav>
          <div class="stack">
            <section class="card prose" aria-label="In general">
              {api.info.description.split('\n\n').map((paragraph) => (
                <p key={paragraph}>
                  <Marked text={paragraph} />
                </p>
              ))}
            </section>
            {groups.map((group) => (
              <section key={group.name} class="card" id={group.name} aria-label={group.name}>
                <header>
                  <h2>{group.name}</h2>
                  <span class="hint">{group.description}</span>
                </header>
                {group.operations.map((operation) => (
                  <OperationDetails key={operation.operationId} operation={operation} />
                ))}
              </section>
            ))}
          </div>
        </div>
      </>
    ),
  })
}

function OperationDetails({ operation }: { operation: Listed }): VNode {
  const { method, path, summary, description, parameters, requestBody, responses } = operation
  return (
    <details class="operation">
      <summary>
        <span class={method === 'POST' ? 'verb post' : 'verb'}>{method}</span>
        <span class="path">{path}</span>
        <span>
          <Marked text={summary} />
        </span>
      </summary>
      <div>
        {description && (
          <p>
            <Marked text={description} />
          </p>
        )}
        {parameters.length > 0 && (
          <dl class="facts wide">
            {parameters.map((parameter) => (
              <div key={parameter.in + parameter.name}>
                <dt>
                  <code>{parameter.name}</code>
                </dt>
                <dd>
                  {parameter.in}
                  {parameter.required ? '' : ', optional'}. <Marked text={parameter.description ?? ''} />
                </dd>
              </div>
            ))}
          </dl>
        )}
        {requestBody && (
          <p>
            <b>Body</b> ({Object.keys(requestBody.content).join(', ')}):{' '}
            <Marked text={requestBody.description ?? ''} />
          </p>
        )}
        <dl class="facts wide">
          {Object.entries(responses).map(([status, { description: text = '', content = {} }]) => (
            <div key={status}>
              <dt>
                <code>{status === 'default' ? '500' : status}</code>
              </dt>
              <dd>
                <Marked text={text} />
                {status.startsWith('2') && Object.keys(content).length > 0 && (
                  <span class="hint"> {Object.keys(content).join(', ')}</span>
                )}
              </dd>
            </div>
          ))}
        </dl>
      </div>
    </details>
  )
}

/** Text in which `code` is marked up. */
function Marked({ text }: { text: string }): VNode {
  return (
    <>
      {shown(text, 4000)
        .split('`')
        .map((part, at) => (at % 2 === 0 ? part : <code key={part}>{part}</code>))}
    </>
  )
}

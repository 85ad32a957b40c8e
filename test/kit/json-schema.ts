/** Implements JSON Schema (drafts 4 and 7) as far as the schemas here use it. */

export interface JsonSchema {
  readonly $ref?: string;
  readonly definitions?: Readonly<Record<string, JsonSchema>>;
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly pattern?: string;
  readonly format?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minItems?: number;
  readonly uniqueItems?: boolean;
  readonly items?: JsonSchema;
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly additionalProperties?: boolean | JsonSchema;
  readonly anyOf?: readonly JsonSchema[];
  readonly oneOf?: readonly JsonSchema[];
}

/** Lists where and why the value does not match. Empty if it matches. */
export function schemaErrors(value: unknown, root: JsonSchema): readonly string[] {
  return errors(value, root, root, '$');
}

function errors(value: unknown, schema: JsonSchema, root: JsonSchema, path: string): string[] {
  if (schema.$ref !== undefined) {
    const name = schema.$ref.replace('#/definitions/', '');
    const target = root.definitions?.[name];
    return target === undefined
      ? [`${path}: no ${schema.$ref}`]
      : errors(value, target, root, path);
  }
  const found: string[] = [];
  const wrong = (why: string): void => void found.push(`${path}: ${why}`);
  const kind = value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value;
  const types = schema.type === undefined ? [] : [schema.type].flat();
  const isType = types.some(
    (type) => type === kind || (type === 'integer' && Number.isInteger(value)),
  );
  if (types.length > 0 && !isType) wrong(`${kind} and not ${types.join(' or ')}`);
  if (schema.enum !== undefined && !schema.enum.includes(value))
    wrong(`${String(value)} is not listed`);
  if (typeof value === 'string') {
    if (schema.pattern !== undefined && !new RegExp(schema.pattern).test(value))
      wrong(schema.pattern);
    if (schema.format === 'uri' && !URL.canParse(value)) wrong('no URI');
    if (schema.format === 'uri-reference' && !URL.canParse(value, 'file:///x/')) wrong('no URI');
  }
  if (typeof value === 'number') {
    if (value < (schema.minimum ?? value) || value > (schema.maximum ?? value)) wrong(`${value}`);
  }
  if (Array.isArray(value)) {
    if (value.length < (schema.minItems ?? 0)) wrong(`${value.length} items`);
    const texts = value.map((item) => JSON.stringify(item));
    if (schema.uniqueItems === true && new Set(texts).size < texts.length) wrong('items twice');
    value.forEach((item: unknown, index) =>
      found.push(...errors(item, schema.items ?? {}, root, `${path}[${index}]`)),
    );
  } else if (kind === 'object') found.push(...fieldErrors(value as object, schema, root, path));
  for (const [choices, all] of [
    [schema.anyOf, 'anyOf'],
    [schema.oneOf, 'oneOf'],
  ] as const) {
    if (choices === undefined) continue;
    const fits = choices.filter((one) => errors(value, one, root, path).length === 0).length;
    if (fits === 0 || (all === 'oneOf' && fits > 1)) wrong(`${fits} of ${all}`);
  }
  return found;
}

function fieldErrors(value: object, schema: JsonSchema, root: JsonSchema, path: string): string[] {
  const missing = (schema.required ?? [])
    .filter((key) => !Object.hasOwn(value, key))
    .map((key) => `${path}: no ${key}`);
  const { properties = {}, additionalProperties = true } = schema;
  return Object.entries(value).reduce((found: string[], [key, held]) => {
    const own = Object.hasOwn(properties, key) ? properties[key] : undefined;
    const inner = own ?? (typeof additionalProperties === 'object' ? additionalProperties : {});
    if (own === undefined && additionalProperties === false)
      found.push(`${path}: ${key} is unknown`);
    return [...found, ...errors(held, inner, root, `${path}.${key}`)];
  }, missing);
}

// OpenAI's Node SDK before the gateway; prints what it saw as one JSON object, for Python to judge.
// Run with OPENAI_BASE_URL, OPENAI_API_KEY and the model as the only argument.
import OpenAI from "openai";

const model = process.argv[2];
const openai = new OpenAI({ maxRetries: 0 });
const messages = [{ role: "user", content: "What is the capital of France? Answer in one sentence." }];
const sure = { model, temperature: 0, max_tokens: 24 };

const city = {
  type: "object",
  properties: { city: { enum: ["Paris", "Rome"] } },
  required: ["city"],
  additionalProperties: false,
};

async function refusal(call) {
  try {
    await call;
  } catch (error) {
    const { status, code, type, param } = error;
    return { name: error.constructor.name, status, code, type, param, id: error.requestID };
  }
  return null;
}

async function chat() {
  const answer = await openai.chat.completions.create({ ...sure, messages });
  return { text: answer.choices[0].message.content, usage: answer.usage, id: answer._request_id };
}

async function stream() {
  let text = "";
  let chunks = 0;
  let usage = null;
  const options = { include_usage: true };
  for await (const chunk of await openai.chat.completions.create({
    ...sure,
    messages,
    stream: true,
    stream_options: options,
  })) {
    text += chunk.choices[0]?.delta.content ?? "";
    usage = chunk.usage ?? usage;
    chunks += 1;
  }
  return { text, chunks, usage };
}

async function tool() {
  const answer = await openai.chat.completions
    .stream({
      ...sure,
      max_tokens: 120,
      messages,
      tools: [{ type: "function", function: { name: "weather", parameters: city, strict: true } }],
      tool_choice: "required",
    })
    .finalChatCompletion();
  const [call] = answer.choices[0].message.tool_calls;
  return { name: call.function.name, arguments: JSON.parse(call.function.arguments) };
}

async function responses() {
  const whole = await openai.responses.create({
    model,
    input: messages[0].content,
    temperature: 0,
    max_output_tokens: 24,
  });
  const streamed = await openai.responses
    .stream({ model, input: messages[0].content, temperature: 0, max_output_tokens: 24 })
    .finalResponse();
  return { whole: whole.output_text, streamed: streamed.output_text, usage: streamed.usage };
}

async function models() {
  const ids = [];
  for await (const listed of openai.models.list()) ids.push(listed.id);
  return ids;
}

const long = [{ role: "user", content: "word ".repeat(9000) }];
const seen = {
  chat: await chat(),
  stream: await stream(),
  tool: await tool(),
  responses: await responses(),
  models: await models(),
  refusals: {
    long: await refusal(openai.chat.completions.create({ model, messages: long })),
    longStream: await refusal(openai.chat.completions.create({ model, messages: long, stream: true })),
    longResponse: await refusal(openai.responses.create({ model, input: long[0].content, stream: true })),
    model: await refusal(openai.chat.completions.create({ model: "gpt-4o", messages })),
    route: await refusal(openai.images.generate({ prompt: "a cat" })),
    key: await refusal(openai.withOptions({ apiKey: "sk-wrong" }).models.list()),
    absent: await refusal(openai.chat.completions.create({ model: "absent", messages })),
  },
};
console.log(JSON.stringify(seen));

// Sends events with posthog-server, PostHog's client for Java, in a process of its own.

import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import com.google.gson.ToNumberPolicy;
import com.posthog.server.PostHog;
import com.posthog.server.PostHogCaptureOptions;
import com.posthog.server.PostHogConfig;
import com.posthog.server.PostHogInterface;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;

public class PosthogServer {
  public static void main(String[] arguments) throws Exception {
    Gson gson = new GsonBuilder().setObjectToNumberStrategy(ToNumberPolicy.LONG_OR_DOUBLE).create();
    Map<String, Object> run = mapOf(gson.fromJson(arguments[0], Object.class));
    List<?> steps = (List<?>) run.get("calls");
    PostHogInterface client =
        PostHog.with(
            PostHogConfig.builder((String) run.get("key"))
                .host((String) run.get("url"))
                .preloadFeatureFlags(false)
                .build());
    for (Object step : steps) {
      take(client, mapOf(step));
      Thread.sleep(((Number) run.get("paceMs")).longValue());
    }
    // Without it, close loses what waits.
    client.flush();
    client.close();
    // It reports no errors.
    List<Integer> delivered = IntStream.range(0, steps.size()).boxed().toList();
    System.out.println(gson.toJson(Map.of("errors", List.of(), "delivered", delivered)));
  }

  private static void take(PostHogInterface client, Map<String, Object> step) {
    String distinctId = (String) step.get("distinctId");
    switch ((String) step.get("do")) {
      case "capture" -> {
        PostHogCaptureOptions.Builder options =
            PostHogCaptureOptions.builder().properties(mapOf(step.get("properties")));
        if (step.containsKey("groups")) {
          mapOf(step.get("groups")).forEach((type, key) -> options.group(type, (String) key));
        }
        if (step.containsKey("timestamp")) {
          options.timestamp(Instant.parse((String) mapOf(step.get("timestamp")).get("$date")));
        }
        client.capture(distinctId, (String) step.get("event"), options.build());
      }
      case "identify" -> client.identify(distinctId, mapOf(step.get("set")), mapOf(step.get("setOnce")));
      case "group" -> {
        String type = (String) step.get("type");
        String key = (String) step.get("key");
        // It demands what other clients put there themselves.
        client.group("$" + type + "_" + key, type, key, mapOf(step.get("properties")));
      }
      default -> client.alias(distinctId, (String) step.get("alias"));
    }
  }

  @SuppressWarnings("unchecked")
  private static Map<String, Object> mapOf(Object value) {
    return (Map<String, Object>) value;
  }
}
